"""Torture: the shipped classes on a real engine, while processes, connections and Regions fail.

python -m torture                     a run and its judgement (`make torture`)
python -m torture.dynamodb_local      fetches Amazon's DynamoDB Local, for the contract tests and `--engine local`
"""
