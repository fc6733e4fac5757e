//! The scripts that a simulated server runs: the shipped ones, or ones with a mistake in them.

use std::collections::HashMap;
use std::sync::Arc;

use bowline::Script;

/// What stands in a script, and what stands there instead.
#[cfg(feature = "_mutants")]
pub type Patch = (&'static str, &'static str);

/// The altered scripts by their names; the others are as shipped.
#[derive(Clone, Default)]
pub struct Scripts(Arc<HashMap<&'static str, String>>);

impl Scripts {
    /// Every patch must fit, and in no script or shared steps twice: a mistake that is not made proves nothing. Steps
    /// stand in a script more than once, and are the same everywhere.
    #[cfg(feature = "_mutants")]
    pub fn patched(patches: &[Patch]) -> Result<Self, String> {
        let mut altered: HashMap<&'static str, String> = HashMap::new();
        for (from, to) in patches {
            let (from, to) = (&*Script::with_numbers(from), &*Script::with_numbers(to));
            let mut fits = 0;
            for script in Script::all() {
                let source = altered.get(script.name()).map_or(script.text(), String::as_str);
                let times = source.matches(from).count();
                if times > 1 && !Script::steps().any(|steps| Script::with_numbers(steps).matches(from).count() == 1) {
                    return Err(format!("it stands {times} times in {}: {from}", script.name()));
                }
                if times > 0 {
                    altered.insert(script.name(), source.replace(from, to));
                    fits += 1;
                }
            }
            if fits == 0 {
                return Err(format!("it stands in no script: {from}"));
            }
        }
        Ok(Self(Arc::new(altered)))
    }

    pub fn altered(&self, script: &Script) -> Option<&str> {
        self.0.get(script.name()).map(String::as_str)
    }
}
