//! What is told of a key that another program wrote.

use futures::future::BoxFuture;

use super::call::Scripts;
use super::client::types;
use super::fields::decode;
use super::key::type_of;
use super::script::Script;
use super::{shared_counter, timed_permits};
use crate::connection::{Call, ConnectionError};

/// The types of values, as the script `client_types` calls them, and in words.
const TYPES: [(&str, &str); 4] =
    [("string", "a string"), ("hash", "a hash"), ("list", "a list"), ("zset", "a sorted set")];

impl Scripts<'_> {
    /// A server says that a key has a wrong type, and names the script and the line, but not the key. Asks for the
    /// types of the keys. If there is no answer, all keys are named.
    ///
    /// On the heap, because it is rare, and every call would have to carry it.
    pub(super) fn explained<'a>(
        self,
        script: &'static Script,
        keys: &'a [&str],
        error: ConnectionError,
    ) -> BoxFuture<'a, ConnectionError>
    where
        Self: 'a,
    {
        Box::pin(async move {
            let ConnectionError::Refused { code, .. } = error else { return error };
            // The second key of a counter's script is a mark. Only bowline writes marks, and their names have attempt
            // ids in them, so errors do not name them. Calls about permits with leases have left theirs out.
            let of_counter = script.name().starts_with(shared_counter::PREFIX);
            let of_permits = script.name().starts_with(timed_permits::PREFIX);
            let keys = keys.get(..1).filter(|_| of_counter).unwrap_or(keys);
            let asked = types(keys);
            let answer = self.connection.run(Call::new(asked.script, &asked.keys(), &[])).await.ok();
            let found = answer.and_then(|reply| decode(asked.script, &reply, keys.len(), asked.read).ok());
            let wrong = found.into_iter().flatten().zip(keys).filter_map(|(found, key)| {
                let is_string = of_counter || of_permits && type_of(key) != "zset";
                let expected = if is_string { "string" } else { type_of(key) };
                told(key, &found, expected)
            });
            let wrong = wrong.collect::<Vec<_>>().join("; ");
            let message = match keys {
                _ if !wrong.is_empty() => wrong,
                [key] => format!("the key {key} holds a value of a type that bowline does not write there"),
                keys => {
                    let keys = keys.join(", ");
                    format!("one of these keys holds a value of a type that bowline does not write there: {keys}")
                }
            };
            ConnectionError::Refused { code, message }
        })
    }
}

/// `None`: the key has the right type, or has gone.
fn told(key: &str, found: &str, expected: &str) -> Option<String> {
    if [expected, "none"].contains(&found) {
        return None;
    }
    let in_words =
        |word| TYPES.iter().find(|(name, _)| *name == word).map_or("a value of another type", |(_, words)| words);
    Some(format!("the key {key} holds {}, where bowline writes {}", in_words(found), in_words(expected)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::key::Keys;
    use crate::protocol::kind::Kind;

    #[test]
    fn a_name_that_ends_like_a_key_is_a_name() {
        let keys = Keys::new("p", Kind::Lock, "a:queue").unwrap();
        assert_eq!(keys.all().map(type_of).collect::<Vec<_>>(), ["hash", "list", "zset", "string"]);
        let keys = Keys::new("p", Kind::ReadWrite, "fence").unwrap();
        assert_eq!(keys.all().map(type_of).collect::<Vec<_>>(), ["hash", "zset", "list", "zset", "string"]);
        let keys = Keys::new("p", Kind::Latch, "calls").unwrap();
        assert_eq!(keys.all().map(type_of).collect::<Vec<_>>(), ["hash", "zset", "zset"]);
        let keys = Keys::new("p", Kind::Barrier { parties: 2, keep: 0 }, "fence").unwrap();
        assert_eq!(keys.all().map(type_of).collect::<Vec<_>>(), ["hash", "zset", "zset"]);
        assert_eq!(["a:queue", "redisson_lock_token:{a:queue}"].map(type_of), ["hash", "string"]);
    }

    #[test]
    fn the_key_and_both_types_are_told() {
        let told = |key: &str, found| told(key, found, type_of(key));
        assert_eq!(told("p:lock:{a}", "none"), None);
        assert_eq!(told("p:lock:{a}", "hash"), None);
        let list = told("p:lock:{a}", "list").unwrap();
        assert_eq!(list, "the key p:lock:{a} holds a list, where bowline writes a hash");
        let other = told("p:lock:{a}:tickets", "other").unwrap();
        assert_eq!(
            other,
            "the key p:lock:{a}:tickets holds a value of another type, where bowline writes a sorted set"
        );
    }
}
