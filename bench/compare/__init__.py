"""The approaches compared: measured on an engine, and worked out by a model of partitions and the bill; and charts."""
