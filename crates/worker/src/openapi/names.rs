use std::collections::HashSet;

use shoal_protocol::{free_name, is_opaque_name, legal_name, name_digest, shortened_name};

#[derive(Default)]
pub(super) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    pub(super) fn tool(&mut self, id: Option<&str>, method: &str, path: &str) -> String {
        let id = id.filter(|id| !plain(id).is_empty() && !is_opaque_name(id));
        let wanted = match id {
            Some(id) => plain(id),
            None => {
                let wanted = format!("{method}_{path}");
                match is_opaque_name(path) {
                    true => format!("{}_{}", plain(&wanted), name_digest(&wanted)),
                    false => plain(&wanted),
                }
            }
        };
        let wanted = shortened_name(&wanted, &wanted);
        let name = free_name(&wanted, |name| self.0.contains(name));
        self.0.insert(name.clone());
        name
    }

    pub(super) fn argument(&mut self, name: &str, place: &str) -> String {
        let name = legal_name(name);
        let name = match self.is_free(&name) {
            true => name,
            false => free_name(&legal_name(&format!("{name}_in_{place}")), |name| {
                !self.is_free(name)
            }),
        };
        self.0.insert(name.clone());
        name
    }

    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.0.contains(name)
    }
}

fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '_' => plain.push(c),
            _ if plain.ends_with('_') => {}
            _ => plain.push('_'),
        }
    }
    plain.trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::UniqueNames;

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
        assert_eq!(names.tool(Some("{}"), "get", "/"), "get");
        let long = "a".repeat(100);
        let (one, other) = (
            names.tool(Some(&long), "get", "/"),
            names.tool(Some(&long), "get", "/"),
        );
        assert!(one.len() == 64 && other.len() == 64 && one != other);
        assert_eq!(names.tool(Some("猫を取得"), "get", "/cats"), "get_cats");
        assert_eq!(names.tool(Some("猫を取得"), "post", "/cats"), "post_cats");
        let path = names.tool(None, "get", "/猫");
        assert!(
            path.starts_with("get_") && path.len() == "get_".len() + 8,
            "{path}"
        );
        let mut arguments = UniqueNames::default();
        assert_eq!(arguments.argument("id", "path"), "id");
        assert_eq!(arguments.argument("id", "query"), "id_in_query");
        assert_eq!(arguments.argument("id", "query"), "id_in_query_2");
        assert_eq!(arguments.argument("include[]", "query"), "include");
        assert_eq!(arguments.argument("StartTime<", "query"), "StartTime_lt");
    }
}
