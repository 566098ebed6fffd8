use serde_json::{Number, Value};

use crate::print::plain;

/// A field of a form, from `requestedSchema.properties`.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) required: bool,
}

struct Choice<'a> {
    value: &'a Value,
    title: String,
}

impl Field<'_> {
    pub(super) fn describe(&self) -> String {
        let title = self.schema["title"].as_str().unwrap_or(self.name);
        let mut about = vec![self.kind()];
        if self.required {
            about.push("required".to_owned());
        }
        if let Some(default) = self.schema.get("default") {
            about.push(format!("default {default}"));
        }
        let mut text = format!("{title} ({})", about.join(", "));
        if let Some(description) = self.schema["description"].as_str() {
            text.push_str(&format!(": {description}"));
        }
        plain(&text)
    }

    /// Reads the value from an answer's line. `None` if the answer leaves the field out.
    ///
    /// # Errors
    /// Why the line is not a valid value.
    pub(super) fn read(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match self.schema.get("default") {
                Some(default) => Ok(Some(default.clone())),
                None if self.required => Err("an answer is needed; Ctrl-D cancels".to_owned()),
                None => Ok(None),
            };
        }
        self.value(line).map(Some)
    }

    fn kind(&self) -> String {
        let choices = self.choices();
        let titles: Vec<&str> = choices.iter().map(|choice| choice.title.as_str()).collect();
        match (titles.is_empty(), self.is_list()) {
            (false, true) => format!("any of {}, separated by commas", titles.join(" | ")),
            (false, false) => titles.join(" | "),
            (true, _) => match self.schema["type"].as_str().unwrap_or("string") {
                "boolean" => "yes | no".to_owned(),
                kind => self.schema["format"].as_str().unwrap_or(kind).to_owned(),
            },
        }
    }

    fn is_list(&self) -> bool {
        self.schema["type"] == "array"
    }

    fn choices(&self) -> Vec<Choice<'_>> {
        let schema = match self.is_list() {
            true => &self.schema["items"],
            false => self.schema,
        };
        let titled = ["oneOf", "anyOf"]
            .into_iter()
            .filter_map(|several| schema[several].as_array());
        let titled = titled.flatten().filter_map(|choice| {
            let value = choice.get("const")?;
            let title = choice["title"].as_str().map(str::to_owned);
            Some(Choice {
                value,
                title: title.unwrap_or_else(|| word(value)),
            })
        });
        let values = schema["enum"].as_array().into_iter().flatten();
        let plain = values.enumerate().map(|(at, value)| Choice {
            value,
            // Revision 2025-06-18 gives titles by this name.
            title: schema["enumNames"][at]
                .as_str()
                .map_or_else(|| word(value), str::to_owned),
        });
        titled.chain(plain).collect()
    }

    fn value(&self, line: &str) -> Result<Value, String> {
        let choices = self.choices();
        let chosen = |word: &str| {
            let word = word.trim();
            let same = |choice: &&Choice<'_>| {
                choice.title.eq_ignore_ascii_case(word) || self::word(choice.value) == word
            };
            let chosen = choices.iter().find(same);
            chosen
                .map(|choice| choice.value.clone())
                .ok_or_else(|| format!("{word:?} is none of these: {}", self.kind()))
        };
        if self.is_list() {
            let words = line.split(',').filter(|word| !word.trim().is_empty());
            let values = words.map(|word| match choices.is_empty() {
                true => Ok(word.trim().into()),
                false => chosen(word),
            });
            return values.collect();
        }
        if !choices.is_empty() {
            return chosen(line);
        }
        match self.schema["type"].as_str() {
            Some("boolean") => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("type yes or no".to_owned()),
            },
            Some("integer") => {
                let number: i64 = line.parse().map_err(|_| "type a whole number".to_owned())?;
                self.within(number as f64)?;
                Ok(number.into())
            }
            Some("number") => {
                let number = line.parse().ok().and_then(Number::from_f64);
                let number = number.ok_or("type a number")?;
                self.within(number.as_f64().unwrap_or_default())?;
                Ok(number.into())
            }
            _ => {
                let length = line.chars().count() as f64;
                self.bounded(length, ["minLength", "maxLength"], " characters")?;
                Ok(line.into())
            }
        }
    }

    fn within(&self, number: f64) -> Result<(), String> {
        self.bounded(number, ["minimum", "maximum"], "")
    }

    fn bounded(&self, is: f64, [least, most]: [&str; 2], unit: &str) -> Result<(), String> {
        if let Some(least) = self.schema[least].as_f64().filter(|least| is < *least) {
            return Err(format!("at least {least}{unit}"));
        }
        match self.schema[most].as_f64().filter(|most| is > *most) {
            Some(most) => Err(format!("at most {most}{unit}")),
            None => Ok(()),
        }
    }
}

fn word(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}
