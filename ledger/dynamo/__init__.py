"""The edge to DynamoDB: what is asked (`ask`), how it is sent (`send`, `exchange`), and what failed (`failures`)."""
