"""`ledgerctl`, the command line of the counters. Contents:

app          the program                          command      how a function becomes a command
call         one call: options, table, printing   failures     a failure as sentence, remedy, code
show         numbers, tables, progress bars
changes      add                                  values       get, watch
counters     list, top                            scan         which lanes there are
history      history; export, with strays         imports      import, with rows, templates, recipe
lag          lag                                  compaction   compact, verify; rebuild
cost         cost, with bill                      doctor       doctor, with shape
tables       init
"""
