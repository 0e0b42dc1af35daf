//! `cargo xtask picture`: runs the demo and draws what it prints as `docs/demo.svg`.
//!
//! The picture is the demo's own output and nothing else. The seed is fixed, so that the same code gives the same file.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::cargo::{cargo, shown};

const PICTURE: &str = "docs/demo.svg";
const SEED: &str = "7";

/// Sizes in pixels. A character of the fonts named below is 0.6 of its size wide.
const FONT_SIZE: f64 = 13.0;
const CHARACTER: f64 = FONT_SIZE * 0.6;
const LINE: f64 = 18.0;
const MARGIN: f64 = 16.0;
const TITLE_BAR: f64 = 30.0;

/// Draws the picture anew.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut command = cargo(root)?;
    command.args(["run", "--quiet", "--package", "kubectl-karpenter", "--", "demo", "--seed", SEED]);
    command.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
    let output = command.output().with_context(|| format!("start `{}`", shown(&command)))?;
    if !output.status.success() {
        bail!("`{}` failed ({})\n{}", shown(&command), output.status, String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout).context("read the demo's output")?;
    let path = root.join(PICTURE);
    std::fs::write(&path, draw(&text)).with_context(|| format!("write `{}`", path.display()))?;
    println!("{PICTURE} shows `cargo demo --seed {SEED}` as it is now");
    Ok(())
}

/// A piece of a line in one style; the style is the number of the terminal's escape sequence.
#[derive(Debug, PartialEq, Eq)]
struct Piece<'a> {
    style: &'a str,
    text: &'a str,
}

/// The pieces of a line of terminal output.
fn pieces(line: &str) -> Vec<Piece<'_>> {
    let mut parts = line.split("\x1b[");
    let plain = parts.next().map(|text| Piece { style: "0", text });
    let styled = parts.map(|part| {
        let (style, text) = part.split_once('m').unwrap_or(("0", part));
        Piece { style, text }
    });
    plain.into_iter().chain(styled).filter(|piece| !piece.text.is_empty()).collect()
}

/// The class of a style in the picture's style sheet.
fn class(style: &str) -> Option<&'static str> {
    Some(match style {
        "1" => "bold",
        "2" => "dim",
        "31" => "red",
        "32" => "green",
        "33" => "yellow",
        "34" => "blue",
        "35" => "magenta",
        "36" => "cyan",
        _ => return None,
    })
}

fn draw(output: &str) -> String {
    let prompt = "\x1b[32m$\x1b[0m cargo demo";
    let lines: Vec<Vec<Piece<'_>>> = std::iter::once(prompt).chain(output.trim_end().lines()).map(pieces).collect();
    let columns = |line: &Vec<Piece<'_>>| line.iter().map(|piece| piece.text.chars().count()).sum::<usize>();
    let widest = lines.iter().map(columns).max().unwrap_or_default();
    let width = (widest as f64 * CHARACTER + 2.0 * MARGIN).ceil();
    let height = (TITLE_BAR + lines.len() as f64 * LINE + 2.0 * MARGIN).ceil();
    let mut picture = frame(width, height);
    for (index, line) in lines.iter().enumerate() {
        let baseline = TITLE_BAR + MARGIN + index as f64 * LINE + FONT_SIZE;
        draw_line(&mut picture, line, baseline);
    }
    picture.push_str("</svg>\n");
    picture
}

/// Every piece gets its own place, so that columns stay columns whatever font is there.
fn draw_line(picture: &mut String, line: &[Piece<'_>], baseline: f64) {
    let mut column = 0;
    for Piece { style, text } in line {
        let inked = text.trim_start_matches(' ');
        let start = column + text.chars().count() - inked.chars().count();
        column += text.chars().count();
        let inked = inked.trim_end_matches(' ');
        if inked.is_empty() {
            continue;
        }
        let x = MARGIN + start as f64 * CHARACTER;
        let length = inked.chars().count() as f64 * CHARACTER;
        let class = class(style).map(|class| format!(" class=\"{class}\"")).unwrap_or_default();
        let inked = inked.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        // Writing to a string cannot fail.
        let _ = writeln!(
            picture,
            "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{length:.1}\"{class}>{inked}</text>"
        );
    }
}

fn frame(width: f64, height: f64) -> String {
    let dot = |index: f64, colour: &str| {
        let x = MARGIN + 6.0 + index * 20.0;
        format!("<circle cx=\"{x}\" cy=\"16\" r=\"6\" fill=\"{colour}\"/>\n")
    };
    let dots = [dot(0.0, "#f26d6d"), dot(1.0, "#e8b84b"), dot(2.0, "#6cc070")].concat();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
viewBox=\"0 0 {width} {height}\" role=\"img\">
<title>What cargo demo prints</title>
<style>
text {{ font: {FONT_SIZE}px 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace; fill: #d6dae0; white-space: pre; }}
.bold {{ fill: #ffffff; font-weight: bold; }} .dim {{ fill: #7f8896; }} .red {{ fill: #f47b7b; }}
.green {{ fill: #82cf87; }} .yellow {{ fill: #ecc35e; }} .blue {{ fill: #7fb2f5; }}
.magenta {{ fill: #d09be8; }} .cyan {{ fill: #6fd0d6; }}
</style>
<rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1d2127\"/>
{dots}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_become_styles() {
        let plain = |text| Piece { style: "0", text };
        assert_eq!(pieces("a \x1b[31mb\x1b[0m c"), [plain("a "), Piece { style: "31", text: "b" }, plain(" c")]);
    }

    #[test]
    fn pieces_stand_in_their_columns() {
        let mut picture = String::new();
        draw_line(&mut picture, &pieces("  \x1b[2m<a>\x1b[0m  b"), 10.0);
        let expected = "<text x=\"31.6\" y=\"10.0\" textLength=\"23.4\" class=\"dim\">&lt;a&gt;</text>
<text x=\"70.6\" y=\"10.0\" textLength=\"7.8\">b</text>
";
        assert_eq!(picture, expected);
    }
}
