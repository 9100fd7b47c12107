//! Messages of JSON-RPC 2.0, one JSON object per line, as in the stdio transport of the Model
//! Context Protocol.

use std::io::{self, BufRead, Read};

use serde_json::{Map, Value, json};

/// Maximum number of bytes of a message.
const N_BYTES_MAX: u64 = 16 << 20;

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum ClientMessage {
    /// It wants an answer.
    Request {
        /// Its number or text, which the answer repeats.
        id: Value,
        /// The method.
        method: String,
        /// Its arguments.
        params: Map<String, Value>,
    },
    /// It wants no answer: a notification, or an answer to a request that was never made.
    Other,
}

/// An error of the protocol.
#[derive(Debug, PartialEq)]
pub struct RpcError {
    /// The code that JSON-RPC defines.
    pub code: i64,
    /// The kind of error.
    pub message: &'static str,
    /// The cause.
    pub cause: String,
    /// A valid message.
    pub expected: String,
    /// The request, if it is known.
    pub id: Box<Value>,
}

impl RpcError {
    pub(super) fn parse(cause: String) -> RpcError {
        RpcError {
            code: -32700,
            message: "parse error",
            cause,
            expected: "one JSON object per line, of at most 16 MiB and 128 levels".to_owned(),
            id: Box::default(),
        }
    }

    fn invalid(id: Value, cause: impl Into<String>) -> RpcError {
        RpcError {
            code: -32600,
            message: "invalid request",
            cause: cause.into(),
            expected: r#"an object with "jsonrpc": "2.0", a "method" and, for answers, an "id""#
                .to_owned(),
            id: Box::new(id),
        }
    }

    pub(super) fn no_method(id: Value, method: &str) -> RpcError {
        RpcError {
            code: -32601,
            message: "method not found",
            cause: format!("there is no method `{method}`"),
            expected: "initialize, ping, tools/list or tools/call".to_owned(),
            id: Box::new(id),
        }
    }

    pub(super) fn params(id: Value, cause: String, expected: String) -> RpcError {
        RpcError {
            code: -32602,
            message: "invalid params",
            cause,
            expected,
            id: Box::new(id),
        }
    }

    /// The answer.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "jsonrpc": "2.0",
            "id": self.id,
            "error": {
                "code": self.code,
                "message": format!("{}: {}; expected {}", self.message, self.cause, self.expected),
                "data": { "cause": self.cause, "expected": self.expected },
            },
        })
    }
}

/// The answer to a request.
pub(super) fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// Reads a line; `None` at the end of the input.
pub(super) fn read_line(input: &mut impl BufRead) -> io::Result<Option<Result<Vec<u8>, RpcError>>> {
    let mut line = Vec::new();
    input.take(N_BYTES_MAX + 1).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || (line.len() as u64) <= N_BYTES_MAX {
        return Ok(Some(Ok(line)));
    }
    // Skips the rest without holding it, so that the next message is understood.
    loop {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let n_read = end.map_or(buffer.len(), |end| end + 1);
        input.consume(n_read);
        if end.is_some() || n_read == 0 {
            break;
        }
    }
    let cause = format!("the message has more than {N_BYTES_MAX} bytes");
    Ok(Some(Err(RpcError::parse(cause))))
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// Parses a message.
///
/// # Errors
/// [`RpcError`] if it is no JSON object of JSON-RPC 2.0.
pub fn parse(line: &[u8]) -> Result<ClientMessage, RpcError> {
    // The parser refuses more than 128 levels.
    let value: Value =
        serde_json::from_slice(line).map_err(|error| RpcError::parse(error.to_string()))?;
    let Value::Object(mut message) = value else {
        return Err(RpcError::invalid(
            Value::Null,
            "the message is not an object",
        ));
    };
    let id = message.remove("id");
    let known = id.clone().filter(is_id).unwrap_or_default();
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(RpcError::invalid(known, "`jsonrpc` is not \"2.0\""));
    }
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return Err(RpcError::invalid(
            known,
            "`id` is neither a text nor an integer",
        ));
    }
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        // The client answers a request, and this server makes none.
        None if message.contains_key("result") || message.contains_key("error") => {
            return Ok(ClientMessage::Other);
        }
        _ => {
            return Err(RpcError::invalid(
                known,
                "`method` is missing or not a text",
            ));
        }
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(RpcError::invalid(known, "`params` is not an object")),
    };
    Ok(match id {
        Some(id) => ClientMessage::Request { id, method, params },
        None => ClientMessage::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_requests_or_have_an_error() {
        let request = parse(br#"{"jsonrpc": "2.0", "id": 3, "method": "ping"}"#);
        let expected = ClientMessage::Request {
            id: json!(3),
            method: "ping".to_owned(),
            params: Map::new(),
        };
        assert_eq!(request, Ok(expected));
        for other in [
            r#"{"jsonrpc": "2.0", "method": "notifications/initialized"}"#,
            r#"{"jsonrpc": "2.0", "id": 1, "result": {}}"#,
        ] {
            assert_eq!(parse(other.as_bytes()), Ok(ClientMessage::Other), "{other}");
        }
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        for (text, code, id) in [
            ("", -32700, Value::Null),
            ("{", -32700, Value::Null),
            (&*deep, -32700, Value::Null),
            ("[]", -32600, Value::Null),
            (r#"{"id": "a", "method": "ping"}"#, -32600, json!("a")),
            (
                r#"{"jsonrpc": "2.0", "id": [], "method": "ping"}"#,
                -32600,
                Value::Null,
            ),
            (
                r#"{"jsonrpc": "2.0", "id": 1, "method": 2}"#,
                -32600,
                json!(1),
            ),
            (
                r#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}"#,
                -32600,
                json!(1),
            ),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.code, *error.id), (code, id), "{text}");
        }
    }

    #[test]
    fn long_lines_are_skipped() {
        let mut input = vec![b' '; N_BYTES_MAX as usize + 10];
        input.extend(b"\nnext\nlast");
        let mut input = &input[..];
        let error = read_line(&mut input).unwrap().unwrap().unwrap_err();
        assert_eq!(error.code, -32700);
        for line in [&b"next\n"[..], b"last"] {
            assert_eq!(read_line(&mut input).unwrap().unwrap().unwrap(), line);
        }
        assert_eq!(read_line(&mut input).unwrap(), None);
    }
}
