"""The deployed service. Contents of this part, finding work (docs/compaction.md):

mark/      table stream -> marks             marks.py   the marks: values, rules, requests
plan/      every minute: marks -> queue      world.py   what answers requests: table, marks, queue
compact/   queue -> visit -> mark            work.py    the messages of the work queue
find/      slow scan -> forgotten lanes      observe.py logger, metrics, their names
"""
