//! UniqueNames of tools and of their arguments.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

/// Characters of a tool's name; several clients take no more.
const LONGEST: usize = 64;
/// Characters of a digest that tell two long names apart.
const DIGEST: usize = 8;

/// Names that are taken.
#[derive(Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// The name of an operation's tool: its id, else its method and path.
    pub(super) fn tool(&mut self, id: Option<&str>, method: &str, path: &str) -> String {
        let id = id.filter(|id| !id.trim().is_empty());
        let wanted = id.map_or_else(|| format!("{method}_{path}"), str::to_owned);
        self.take(&shortened(&plain(&wanted)), |name, number| {
            let number = format!("_{number}");
            format!(
                "{}{number}",
                &name[..name.len().min(LONGEST - number.len())]
            )
        })
    }

    /// The name of an argument; another one where it is taken.
    pub(super) fn argument(&mut self, name: &str, place: &str) -> String {
        self.take(name, |name, number| match number {
            2 => format!("{name}_in_{place}"),
            number => format!("{name}_in_{place}_{number}"),
        })
    }

    /// Whether nobody has it.
    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.0.contains(name)
    }

    fn take(&mut self, name: &str, other: impl Fn(&str, usize) -> String) -> String {
        let others = (2..).map(|number| other(name, number));
        let mut names = std::iter::once(name.to_owned()).chain(others);
        let free = names.find(|name| !self.0.contains(name));
        let free = free.expect("there are more numbers than names");
        self.0.insert(free.clone());
        free
    }
}

/// A name of the characters that all clients take.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => plain.push(c),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    match plain.trim_matches('_') {
        "" => "operation".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

fn shortened(name: &str) -> String {
    if name.len() <= LONGEST {
        return name.to_owned();
    }
    let digest = Sha256::digest(name);
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{}", &name[..LONGEST - DIGEST - 1], &digest[..DIGEST])
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, UniqueNames};

    #[test]
    fn names_are_plain_short_and_different() {
        let mut names = UniqueNames::default();
        assert_eq!(
            names.tool(Some("pets.list all"), "get", "/pets"),
            "pets_list_all"
        );
        assert_eq!(names.tool(None, "get", "/pets/{petId}"), "get_pets_petId");
        assert_eq!(
            names.tool(Some("pets/list/all"), "get", "/"),
            "pets_list_all_2"
        );
        assert_eq!(names.tool(Some("{}"), "get", "/"), "operation");
        let long = "a".repeat(100);
        let (one, other) = (
            names.tool(Some(&long), "get", "/"),
            names.tool(Some(&long), "get", "/"),
        );
        assert!(one.len() == LONGEST && other.len() == LONGEST && one != other);
        let mut arguments = UniqueNames::default();
        assert_eq!(arguments.argument("id", "path"), "id");
        assert_eq!(arguments.argument("id", "query"), "id_in_query");
        assert_eq!(arguments.argument("id", "query"), "id_in_query_3");
    }
}
