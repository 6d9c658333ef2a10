"""The edge to DynamoDB: its operations (`ask`), sending them (`send`, `exchange`), and what
failed (`failures`).
"""
