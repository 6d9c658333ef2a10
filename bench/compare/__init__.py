"""What the comparison works out rather than measures: a model of partitions, the bill, and the charts."""
