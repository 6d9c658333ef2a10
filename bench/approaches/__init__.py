"""Every published way of counting in DynamoDB, behind one interface; `every` lists them."""
