use serde_json::Value;

use crate::print::plain;

const BAR: usize = 24;
const MESSAGE: usize = 36;

pub(super) fn line(params: &Value) -> String {
    let message: String = plain(params["message"].as_str().unwrap_or_default());
    let message: String = message.chars().take(MESSAGE).collect();
    let done = params["progress"].as_f64().unwrap_or_default();
    let line = match params["total"].as_f64().filter(|total| *total > 0.0) {
        Some(total) => {
            let share = (done / total).clamp(0.0, 1.0);
            let full = (0..BAR).filter(|cell| share * BAR as f64 > *cell as f64);
            let full = "#".repeat(full.count());
            format!("[{full:-<BAR$}] {:3.0} % {message}", share * 100.0)
        }
        None => format!("{done} {message}"),
    };
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn a_bar_fills_up() {
        let of = |progress: f64| {
            line(&json!({ "progress": progress, "total": 4, "message": "step\n\u{1b}[2J" }))
        };
        assert_eq!(of(0.0), format!("[{}]   0 % step  [2J", "-".repeat(24)));
        let half = format!("[{}{}]  50 % step  [2J", "#".repeat(12), "-".repeat(12));
        assert_eq!(of(2.0), half);
        assert_eq!(of(9.0), format!("[{}] 100 % step  [2J", "#".repeat(24)));
    }

    #[test]
    fn what_has_no_end_is_counted() {
        assert_eq!(line(&json!({ "progress": 7 })), "7");
        let long = "x".repeat(500);
        let said = line(&json!({ "progress": 1.5, "message": long, "total": 0 }));
        assert_eq!(said.chars().count(), 40);
    }
}
