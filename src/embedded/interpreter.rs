//! The Lua interpreter, with the globals that Redis gives to scripts.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use super::answer::Failure;
use super::commands;
use super::convert::{answer, raised, reply, words};
use super::keyspace::Database;
use crate::connection::Reply;
use crate::mutex::lock;
use crate::protocol::Script;

pub(super) enum Program<'a> {
    /// A script of the library. It is compiled once in this process, and loaded once by each server.
    Script(&'static Script),
    /// Any other source. It is compiled at its first run, and the most recent ones are kept.
    Source(&'a str),
}

pub(super) struct Interpreter {
    lua: Lua,
    /// Lua's own `pcall`, which calls a script. Unlike mlua's calls, it keeps an error that is a table.
    protected: Function,
    /// The key is the SHA1 of the script.
    loaded: HashMap<&'static str, Function>,
    /// The key is the source.
    sources: HashMap<String, Function>,
}

/// The bytecode of scripts, by their SHA1.
type Bytecode = HashMap<&'static str, Arc<[u8]>>;

/// The scripts of the library, for all servers of the process. Programs that start many servers, such as tests, spend
/// much of their time on compiling otherwise.
static BYTECODE: LazyLock<Mutex<Bytecode>> = LazyLock::new(Mutex::default);

/// The most sources that are kept, so that a program which generates its scripts does not use more and more memory.
const SOURCES: usize = 64;

impl Interpreter {
    pub(super) fn new(database: &Arc<Mutex<Database>>) -> mlua::Result<Self> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::default())?;
        let database = database.clone();
        let execute = lua.create_function(move |lua, args: MultiValue| {
            let outcome = words(&args).map_err(|line| Failure(line.into()));
            answer(lua, outcome.and_then(|words| commands::execute(&mut lock(&database), &words)))
        })?;
        let protected = lua.load(include_str!("prelude.lua")).set_name("@prelude").call(execute)?;
        Ok(Self { lua, protected, loaded: HashMap::new(), sources: HashMap::new() })
    }

    /// The error is the line that Redis would send.
    pub(super) fn run<'a>(
        &mut self,
        program: Program<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Reply, String> {
        let function = self.function(program)?;
        let called = || {
            let globals = self.lua.globals();
            globals.raw_set("KEYS", self.list(keys)?)?;
            globals.raw_set("ARGV", self.list(args)?)?;
            self.protected.call::<(bool, Value)>(function)
        };
        match called() {
            Ok((true, value)) => reply(&value),
            Ok((false, error)) => Err(raised(&error)),
            Err(error) => Err(format!("ERR {error}")),
        }
    }

    fn function(&mut self, program: Program<'_>) -> Result<Function, String> {
        match program {
            Program::Source(source) => {
                if let Some(function) = self.sources.get(source) {
                    return Ok(function.clone());
                }
                let function = self.compile(source)?;
                if self.sources.len() == SOURCES {
                    self.sources.clear();
                }
                self.sources.insert(source.to_owned(), function.clone());
                Ok(function)
            }
            Program::Script(script) => {
                if let Some(function) = self.loaded.get(script.sha1()) {
                    return Ok(function.clone());
                }
                let function = self.load(script)?;
                self.loaded.insert(script.sha1(), function.clone());
                Ok(function)
            }
        }
    }

    fn load(&self, script: &'static Script) -> Result<Function, String> {
        let bytecode = lock(&BYTECODE).get(script.sha1()).cloned();
        if let Some(bytecode) = bytecode {
            return self.function_of(&bytecode, ChunkMode::Binary);
        }
        let function = self.compile(script.source())?;
        lock(&BYTECODE).insert(script.sha1(), function.dump(false).into());
        Ok(function)
    }

    fn compile(&self, source: &str) -> Result<Function, String> {
        self.function_of(source.as_bytes(), ChunkMode::Text)
    }

    fn function_of(&self, chunk: &[u8], mode: ChunkMode) -> Result<Function, String> {
        let chunk = self.lua.load(chunk).set_mode(mode).set_name("@user_script");
        chunk.into_function().map_err(|error| format!("ERR Error compiling script: {error}"))
    }

    fn list<'a>(&self, items: impl Iterator<Item = &'a [u8]>) -> mlua::Result<Table> {
        let table = self.lua.create_table()?;
        for item in items {
            table.raw_push(self.lua.create_string(item)?)?;
        }
        Ok(table)
    }
}
