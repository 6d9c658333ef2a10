"""Where the counter is proved, measured and shown; never installed, and nothing outside imports it.
The rooms:

engines    two embedded DynamoDBs, the replication between their Regions, a proxy that spoils
           requests
events     changes from a file, or made up
designs    the published ways of counting, ours among them, on one interface
measure    the meter, the figures of docs/costs.md, every published way of counting beside this one
histories  seeded histories of the shipped programs, every order of small casts, planted mistakes
spec       the protocol in TLA+, and the mistakes that the model finds
mutants    lines of the code changed in small ways, drawn by a seed
run        the shipped classes on a real engine while processes, connections and Regions fail:
           gently, roughly
e2e        the deployed service, used from outside; broken and mended under the eyes of its alarms
live       the live page
"""
