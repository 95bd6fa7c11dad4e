"""Callouts (the Dottie protocol): what happened in a mission, as text and voice."""
