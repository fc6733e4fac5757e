//! Converts between Lua and Redis: arguments and replies of commands, results and errors of scripts.

use mlua::{Lua, MultiValue, Table, Value};

use super::answer::{Failure, LuaAnswer};
use super::number::{general, spelled};
use crate::connection::Reply;

/// The deepest nesting of tables in a reply. A deeper one is an error instead of a stack overflow.
const DEEPEST: usize = 500;

/// The name of a command and its arguments.
pub(super) fn words(args: &MultiValue) -> Result<Vec<Vec<u8>>, &'static str> {
    if args.is_empty() {
        return Err("ERR Please specify at least one argument for this redis.call() call");
    }
    let word = |arg: &Value| match arg {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(spelled(number.to_string()).into_bytes()),
        Value::Number(number) => Some(spelled(general(*number)).into_bytes()),
        _ => None,
    };
    let words: Option<Vec<_>> = args.iter().map(word).collect();
    words.ok_or("ERR Lua redis lib command arguments must be strings or integers")
}

/// Converts a command's answer to the result of `redis.pcall`.
pub(super) fn answer(lua: &Lua, outcome: Result<LuaAnswer, Failure>) -> mlua::Result<Value> {
    let field = |name: &str, text: &str| {
        let table = lua.create_table()?;
        table.raw_set(name, text)?;
        Ok(Value::Table(table))
    };
    match outcome {
        Err(Failure(line)) => field("err", &line),
        Ok(LuaAnswer::Ok) => field("ok", "OK"),
        Ok(LuaAnswer::Nil) => Ok(Value::Boolean(false)),
        // Numbers of Lua 5.1 are doubles, and Redis converts integers to them.
        Ok(LuaAnswer::Integer(number)) => Ok(Value::Number(number as f64)),
        Ok(LuaAnswer::Bytes(bytes)) => Ok(Value::String(lua.create_string(bytes)?)),
        Ok(LuaAnswer::Array(items)) => Ok(Value::Table(list(lua, items)?)),
        Ok(LuaAnswer::Page { cursor, keys }) => {
            let page = lua.create_table_with_capacity(2, 0)?;
            page.raw_push(lua.create_string(cursor)?)?;
            page.raw_push(list(lua, keys.into_iter().map(Some))?)?;
            Ok(Value::Table(page))
        }
        Ok(LuaAnswer::Counts(counts)) => {
            let table = lua.create_table_with_capacity(2 * counts.len(), 0)?;
            for (name, count) in counts {
                table.raw_push(lua.create_string(name)?)?;
                table.raw_push(count as f64)?;
            }
            Ok(Value::Table(table))
        }
    }
}

fn list(lua: &Lua, items: impl IntoIterator<Item = Option<Vec<u8>>>) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    for item in items {
        match item {
            Some(bytes) => table.raw_push(lua.create_string(bytes)?)?,
            None => table.raw_push(false)?,
        }
    }
    Ok(table)
}

/// Converts the result of a script to its reply. If an error is nested in it, the error is the whole reply, because a
/// `Connection` cannot return a part of a reply.
pub(super) fn reply(value: &Value) -> Result<Reply, String> {
    nested(value, 0)
}

fn nested(value: &Value, depth: usize) -> Result<Reply, String> {
    Ok(match value {
        Value::String(text) => Reply::Bytes(text.as_bytes().to_vec()),
        Value::Integer(number) => Reply::Integer(*number),
        // 3.99 becomes 3, as in Redis. A number out of range is undefined in Redis and saturates here.
        Value::Number(number) => Reply::Integer(*number as i64),
        Value::Boolean(true) => Reply::Integer(1),
        Value::Table(_) if depth == DEEPEST => return Err("ERR reached lua stack limit".to_owned()),
        Value::Table(table) => {
            if let Some(line) = text(table, "err") {
                return Err(one_line(&line));
            }
            if let Some(status) = text(table, "ok") {
                return Ok(Reply::Bytes(one_line(&status).into_bytes()));
            }
            let mut items = Vec::new();
            loop {
                match table.raw_get(items.len() + 1) {
                    Ok(Value::Nil) | Err(_) => break,
                    Ok(item) => items.push(nested(&item, depth + 1)?),
                }
            }
            Reply::Array(items)
        }
        _ => Reply::Nil,
    })
}

/// Converts an error that a script raised to the line that Redis sends.
pub(super) fn raised(error: &Value) -> String {
    match error {
        Value::Table(table) => {
            text(table, "err").map_or_else(|| "ERR unknown error".to_owned(), |line| one_line(&line))
        }
        Value::String(text) => one_line(&format!("ERR {}", String::from_utf8_lossy(&text.as_bytes()))),
        other => one_line(&format!("ERR {other:?}")),
    }
}

fn text(table: &Table, field: &str) -> Option<String> {
    match table.raw_get(field) {
        Ok(Value::String(text)) => Some(String::from_utf8_lossy(&text.as_bytes()).into_owned()),
        _ => None,
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}
