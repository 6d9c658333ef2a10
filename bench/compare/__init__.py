"""The comparison of the approaches: their accuracy, measured; partitions, the bill and the charts, worked out."""
