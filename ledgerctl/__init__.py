"""`ledgerctl`, the command line of the counters. Contents:

app          the program                          command      how a function becomes a command
call         one call: options, table, printing   failures     a failure as sentence, remedy, code
show         numbers, tables, progress bars
changes      add; again: what sends it again      values       get, watch
standing     standing, holds                      limit        limit
hold         hold                                 ends         capture, release
counters     list, top                            history      history, export
imports      import, with rows, templates
lag          lag                                  compaction   compact, verify; rebuild
cost         cost, with bill                      doctor       doctor, with shape
tables       init
"""
