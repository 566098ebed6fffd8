//! Each line plot has a table of its values for readers who cannot see it.

use std::fmt::Write;

use super::html::{escape, folded, table};
use super::number::short;
use super::scale::Scale;
use crate::outcome::Mark;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 64.0;
const BELOW: f64 = 40.0;
const ABOVE: f64 = 18.0;
const RIGHT: f64 = 16.0;

pub(super) const KINDS: usize = 6;

/// Lines with at most this many points have marks.
const FEW: usize = 40;

pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) struct Plot<'a> {
    pub(super) title: String,
    pub(super) x_name: &'a str,
    pub(super) y_name: &'a str,
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) x_text: fn(f64) -> String,
    pub(super) y_text: fn(f64) -> String,
    pub(super) lines: Vec<Line>,
    pub(super) marks: &'a [Mark],
}

impl Plot<'_> {
    pub(super) fn figure(&self) -> String {
        let title = escape(&self.title);
        let mut html = format!("<figure><figcaption>{title}</figcaption>\n{}", self.svg());
        html.push_str("<ul class=\"legend\">");
        let named = self.lines.len() > 1 || self.lines.iter().any(|line| line.name != self.title);
        for (place, line) in self.lines.iter().enumerate().filter(|_| named) {
            let _ = write!(
                html,
                "<li><svg viewBox=\"0 0 36 10\" aria-hidden=\"true\"><path class=\"curve k{}\" d=\"M0 5H36\"/></svg>{}</li>",
                place % KINDS,
                escape(&line.name)
            );
        }
        html.push_str("</ul>");
        if !self.marks.is_empty() {
            html.push_str("<ol class=\"marks\">");
            for mark in self.marks {
                let _ = write!(
                    html,
                    "<li>{} s: {}</li>",
                    short(mark.at_s),
                    escape(&mark.what)
                );
            }
            html.push_str("</ol>");
        }
        html.push_str(&folded("Values as a table", &self.values()));
        html.push_str("</figure>\n");
        html
    }

    fn svg(&self) -> String {
        let label = format!(
            "{}: {} over {}; the values are in the table below",
            self.title, self.y_name, self.x_name
        );
        let mut svg = format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(&label)
        );
        let (bottom, end) = (HEIGHT - BELOW, WIDTH - RIGHT);
        for tick in self.y.ticks() {
            let y = self.at_y(tick);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{end}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 6.0,
                y + 4.0,
                escape(&(self.y_text)(tick))
            );
        }
        for tick in self.x.ticks() {
            let x = self.at_x(tick);
            let _ = write!(
                svg,
                "<path class=\"grid\" d=\"M{x:.1} {bottom}v5\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 18.0,
                escape(&(self.x_text)(tick))
            );
        }
        let _ = write!(
            svg,
            "<text x=\"{end}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><text x=\"{LEFT}\" y=\"12\">{}</text>",
            HEIGHT - 6.0,
            escape(self.x_name),
            escape(self.y_name)
        );
        for (place, mark) in self.marks.iter().enumerate() {
            let x = self.at_x(mark.at_s);
            let number = place + 1;
            let _ = write!(
                svg,
                "<path class=\"mark\" d=\"M{x:.1} {ABOVE}V{bottom}\"><title>{}</title></path><text x=\"{:.1}\" y=\"{:.1}\">{number}</text>",
                escape(&mark.what),
                x + 3.0,
                ABOVE + 11.0
            );
        }
        for (place, line) in self.lines.iter().enumerate() {
            self.curve(&mut svg, line, place % KINDS);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn curve(&self, svg: &mut String, line: &Line, kind: usize) {
        let mut path = String::new();
        for (x, y) in &line.points {
            let letter = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{:.1} {:.1}", self.at_x(*x), self.at_y(*y));
        }
        let _ = write!(svg, "<path class=\"curve k{kind}\" d=\"{path}\"/>");
        if line.points.len() <= FEW {
            for (x, y) in &line.points {
                let text = format!(
                    "{}, {}: {}",
                    line.name,
                    (self.x_text)(*x),
                    (self.y_text)(*y)
                );
                let _ = write!(
                    svg,
                    "<circle class=\"dot k{kind}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}</title></circle>",
                    self.at_x(*x),
                    self.at_y(*y),
                    escape(&text)
                );
            }
        }
    }

    fn values(&self) -> String {
        let mut places: Vec<f64> = self
            .lines
            .iter()
            .flat_map(|line| line.points.iter().map(|(x, _)| *x))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut head = vec![self.x_name.to_owned()];
        head.extend(self.lines.iter().map(|line| line.name.clone()));
        let rows = places.iter().map(|place| {
            let mut row = vec![(self.x_text)(*place)];
            row.extend(self.lines.iter().map(|line| {
                let point = line.points.iter().find(|(x, _)| x == place);
                point.map_or_else(|| "–".to_owned(), |(_, y)| (self.y_text)(*y))
            }));
            row
        });
        let rows: Vec<Vec<String>> = rows.collect();
        table(&format!("{} ({})", self.title, self.y_name), &head, &rows)
    }

    fn at_x(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn at_y(&self, value: f64) -> f64 {
        HEIGHT - BELOW - self.y.place(value) * (HEIGHT - BELOW - ABOVE)
    }
}
