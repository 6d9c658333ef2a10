"""The tables that answer requests: DynamoDB, blocking or awaited, and one in memory.

| file | what it does with a request |
|---|---|
| dynamo, aio | `DynamoTable`, `AsyncDynamoTable`: send it by a client; alone they wait and block |
| exchange | the program from the request to its answer, page by page, batch by batch |
| send | sends one operation, and again while that helps |
| ask | the operation's arguments, and what its response means |
| expressions | the texts of its conditions and actions, each made once |
| failures, refusals | what a failure of botocore means, and each code of DynamoDB |
| consumed | what the operation cost |
| boto, fast | the clients |
| fast_checks | what speaks against FastClient |
| signing, connections, answers | of FastClient: a request's head, its sockets, what comes back |
| memory | `MemoryTable`: a dictionary that gives the same answers |

One request, from begin to end: a program yields `Put(item, Absent())`. `DynamoTable.answer` drives
the program `exchange.answer`, which asks `ask` for the operation put_item, and yields `Send` to the
table: that request only this room knows. The table calls the client's method and sends the response
back in, or raises botocore's failure there. `send` counts the cost and makes the failure one of our
errors. After a conflict or throttling it yields `Pause`, then `Send` again. Of a refused condition
the failure shows the item that is there, and that is the answer.

It is a program, and no call, so that both tables have the same answers by the same lines: only who
waits differs. Parts that may run at once are one `AtOnce`: threads there, tasks here.
The contract (tests/contract) holds all tables to the same answers.
"""
