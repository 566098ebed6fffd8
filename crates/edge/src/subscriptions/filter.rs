use serde::{Deserialize, Serialize};
use shoal_protocol::{LONGEST_URI, RawJson, RawObject, RpcError};

/// `SubscriptionFilter` (2026-07-28, Subscriptions).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SubscriptionFilter {
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) tools_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) prompts_list_changed: bool,
    #[serde(skip_serializing_if = "is_false")]
    pub(crate) resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_subscriptions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) task_ids: Vec<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl SubscriptionFilter {
    /// Each of the two lists may have `max_names` names.
    pub(crate) fn of(params: Option<&RawJson>, max_names: usize) -> Result<Self, RpcError> {
        let filter = params
            .and_then(RawObject::of)
            .and_then(|params| params.get("notifications"))
            .filter(RawJson::is_object)
            .ok_or_else(|| {
                RpcError::invalid_params(
                    "params.notifications must be an object that says what to listen to",
                )
            })?;
        let mut filter: Self = filter.read().map_err(|error| {
            RpcError::invalid_params(format!("params.notifications is not a filter: {error}"))
        })?;
        let uris = filter.resource_subscriptions.iter();
        if uris.map(String::len).max() > Some(LONGEST_URI.bytes) {
            return Err(LONGEST_URI.exceeded());
        }
        filter.resource_subscriptions.sort_unstable();
        filter.resource_subscriptions.dedup();
        filter.task_ids.sort_unstable();
        filter.task_ids.dedup();
        for (list, names) in [
            ("resourceSubscriptions", &filter.resource_subscriptions),
            ("taskIds", &filter.task_ids),
        ] {
            if names.len() > max_names {
                return Err(RpcError::invalid_params(format!(
                    "params.notifications.{list} holds more than {max_names} names; \
                     open several subscriptions"
                )));
            }
        }
        Ok(filter)
    }

    pub(crate) fn bytes(&self) -> usize {
        let names = self.resource_subscriptions.iter().chain(&self.task_ids);
        names.map(String::len).sum()
    }

    pub(crate) fn supported_by(mut self, capabilities: &RawJson) -> Self {
        let declared = |capability: &str, flag: &str| {
            RawObject::of(capabilities)
                .and_then(|capabilities| RawObject::of(&capabilities.get(capability)?)?.get(flag))
                .is_some_and(|flag| flag.as_str() == "true")
        };
        self.tools_list_changed &= declared("tools", "listChanged");
        self.prompts_list_changed &= declared("prompts", "listChanged");
        self.resources_list_changed &= declared("resources", "listChanged");
        if !declared("resources", "subscribe") {
            self.resource_subscriptions.clear();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use super::SubscriptionFilter;

    fn filter(text: &'static str) -> Result<SubscriptionFilter, i64> {
        SubscriptionFilter::of(Some(&RawJson::from_static(text)), 2).map_err(|error| error.code)
    }

    #[test]
    fn an_unreadable_filter_is_refused() {
        for text in [
            "{}",
            r#"{"notifications":[]}"#,
            r#"{"notifications":{"toolsListChanged":"yes"}}"#,
            r#"{"notifications":{"resourceSubscriptions":["a","b","c"]}}"#,
            r#"{"notifications":{"taskIds":["a","b","c"]}}"#,
            r#"{"notifications":{"taskIds":"a"}}"#,
        ] {
            assert_eq!(filter(text), Err(-32602), "{text}");
        }
    }

    #[test]
    fn only_what_the_server_declares_is_honoured() {
        let asked = filter(
            r#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,
                "resourceSubscriptions":["b","a","b"],"vendorNews":true}}"#,
        );
        let capabilities = RawJson::from_static(
            r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}"#,
        );
        let honoured = asked.unwrap().supported_by(&capabilities);
        assert_eq!(
            RawJson::of(&honoured).as_str(),
            r#"{"toolsListChanged":true,"resourceSubscriptions":["a","b"]}"#
        );
    }
}
