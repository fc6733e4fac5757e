use super::*;

fn header<'a>(script: &'a Script, field: &str) -> &'a str {
    let prefix = format!("-- {field}:");
    let line = script.text().lines().take_while(|line| line.starts_with("--")).find(|l| l.starts_with(&prefix));
    line.unwrap_or_else(|| panic!("{} has no {field} in its header", script.name()))[prefix.len()..].trim()
}

/// The highest N in `KEYS[N]` or `ARGV[N]`, including fragments.
fn highest(script: &Script, array: &str) -> usize {
    let mut highest = 0;
    for part in script.source().split(&format!("{array}[")).skip(1) {
        if let Ok(n) = part[..part.find(']').unwrap()].parse() {
            highest = highest.max(n);
        }
    }
    highest
}

#[test]
fn headers_say_what_the_scripts_use() {
    for script in Script::all() {
        for (field, array) in [("KEYS", "KEYS"), ("ARGV", "ARGV")] {
            let header = header(script, field);
            let fixed = header.split(' ').filter(|word| !word.is_empty()).take_while(|w| !w.starts_with('[')).count();
            assert!(highest(script, array) <= fixed, "{} {field}", script.name());
        }
        assert!(!header(script, "Reply").is_empty());
    }
}

#[test]
fn fragments_are_all_known_and_keys_are_never_built_in_lua() {
    for script in Script::all() {
        // What is sent has no comments, and an unknown fragment would be one.
        assert!(!script.text().contains("--@include"), "{}", script.name());
        assert!(!script.source().contains(":{"), "{}", script.name());
        assert_eq!(script.sha1().len(), 40);
    }
}

/// The source stays the same program, with its words and strings in their order.
#[test]
fn comments_blank_lines_and_indentation_are_not_sent() {
    let text = "-- Head.\n\nlocal a = '--' -- why\n  if a then\n\t-- what\n    return 'x  y'\n  end\n";
    let head = "local C,P=redis.call,redis.pcall\n";
    let stripped = |text| stripped(text).strip_prefix(head).unwrap().to_owned();
    assert_eq!(stripped(text), "local a='--' -- why\nif a then\nreturn 'x  y'\nend\n");
    let text = "local r = redis.call('GET', 'redis.call') or pcall(redis.call, redis.pcall('TIME'))\n";
    assert_eq!(stripped(text), "local r=C('GET','redis.call') or pcall(C,P('TIME'))\n");
    let text = "local a, b = f('x, y = z', -1) - 2, 1 .. 'c' .. d\nif a ~= 'e' and b <= -1 * a then\n";
    assert_eq!(stripped(text), "local a,b=f('x, y = z',-1) - 2,1 .. 'c' .. d\nif a~='e' and b<=-1*a then\n");
    let text = format!("{}return tonumber('tonumber') + string.find(a, 'b')\n", "local a = tonumber(a)\n".repeat(2));
    let short = "local C,P,N=redis.call,redis.pcall,tonumber\nlocal a=N(a)\nlocal a=N(a)\n";
    assert_eq!(super::stripped(&text), format!("{short}return N('tonumber')+string.find(a,'b')\n"));
    for script in Script::all() {
        assert!(!script.text().contains("[[") && !script.text().contains("[="), "{}", script.name());
        for line in script.text().lines().filter(|line| !line.trim_start().starts_with("--")) {
            let mut words = line.split('\'').step_by(2).flat_map(|code| code.split(|c| !(in_word(c) || c == '.')));
            let is_short = |word| CALLS.contains(&word) || FUNCTIONS.iter().any(|(short, _)| *short == word);
            assert!(!words.any(is_short), "{}: {line}", script.name());
        }
        for line in script.source().lines() {
            assert_eq!(line, line.trim(), "{}", script.name());
            assert!(!line.is_empty() && !line.contains("--"), "{}: {line}", script.name());
            assert_eq!(line.matches('\'').count() % 2, 0, "a string goes on: {line}");
            assert!(!line.ends_with('\\'));
        }
        assert!(script.source().len() < 14_750, "{} has {} bytes", script.name(), script.source().len());
    }
}

#[test]
fn shared_numbers_are_put_into_code_and_nothing_else() {
    let numbers = |line| {
        let mut source = String::new();
        push_with_numbers(&mut source, line);
        source
    };
    assert_eq!(numbers("if units == ALL_UNITS then -- all"), "if units == 1048576 then -- all");
    assert_eq!(numbers("  x = ALL_UNITS-HANDOFF_BUDGET"), "  x = 1048576-32");
    assert_eq!(numbers("return 'ALL_UNITS', 'a'"), "return '1048576', 'a'");
    for unchanged in ["-- ALL_UNITS", "return 'ALL_UNITS '", "local ALL_UNITS2, MY_ALL_UNITS = x.y, 'a' .. 'b'", ""] {
        assert_eq!(numbers(unchanged), unchanged);
    }
}

/// A name that is in no table would be a global variable of Lua: nil, or an error on a server.
#[test]
fn every_shared_number_is_used_and_no_name_is_left() {
    for script in Script::all() {
        for (n, code) in script.source().split('\'').enumerate().filter(|(n, _)| n % 2 == 0) {
            let known = ["KEYS", "ARGV", "REDIS_VERSION_NUM"];
            let words = code.split(|c| !in_word(c)).filter(|word| word.len() > 1 && !known.contains(word));
            let left: Vec<_> = words.filter(|word| word.chars().all(|c| c.is_ascii_uppercase() || c == '_')).collect();
            assert!(left.is_empty(), "{} {n}: {left:?}", script.name());
        }
    }
}
