"""Systems that a scenario can be played against: a stage in this process, and servers of several protocols."""
