"""Raw cases: single requests and frames with the answers that the RFCs demand. Nothing here measures time."""
