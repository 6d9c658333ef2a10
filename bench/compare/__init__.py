"""The comparison of the approaches: what is measured on an engine, and what a model of partitions and the bill work out."""
