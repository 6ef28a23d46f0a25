"""Who samples: the embedded engine, on the learner's own weights."""
