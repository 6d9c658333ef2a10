"""The context that Lambda gives a function, as far as Powertools reads it."""

from dataclasses import dataclass


@dataclass
class Context:
    function_name: str = "function"
    memory_limit_in_mb: int = 128
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:111122223333:function:function"
    aws_request_id: str = "52fdfc07-2182-154f-163f-5f0f9a621d72"
    log_group_name: str = "/aws/lambda/function"
    log_stream_name: str = "stream"
    tenant_id: str | None = None

    def get_remaining_time_in_millis(self) -> int:
        return 30_000
