"""The stage: the runtime that a host opens, the registry of its sessions, and the supervisor of its tasks."""
