"""The errors of nats-py that the snippets and the client know."""


class APIError(Exception):
    def __init__(self, error):
        super().__init__(f"nats: {error['code']}, {error.get('description')}, err_code {error.get('err_code')}")
        self.code, self.err_code = error["code"], error.get("err_code")


class NoStreamResponseError(Exception):
    pass
