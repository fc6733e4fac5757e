//! Pictures of results, as SVG files in `target/benches`.

use std::fs;
use std::path::PathBuf;

use plotters::prelude::*;

use crate::Result;

const SIZE: (u32, u32) = (1000, 500);

/// `<name>.svg` in `benches` below the directory of the build.
fn path(name: &str) -> Result<PathBuf> {
    let ours = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target"));
    let directory = std::env::var_os("CARGO_TARGET_DIR").map_or_else(ours, PathBuf::from).join("benches");
    fs::create_dir_all(&directory)?;
    Ok(directory.join(format!("{name}.svg")))
}

/// A bar for each.
pub fn bars(name: &str, title: &str, bars: &[(String, f64)]) -> Result<()> {
    let highest = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    if highest <= 0.0 {
        return Ok(());
    }
    let path = path(name)?;
    let area = SVGBackend::new(&path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    // From top to bottom, with room for long names.
    let bars: Vec<_> = bars.iter().rev().collect();
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(20)
        .x_label_area_size(40)
        .y_label_area_size(180)
        .build_cartesian_2d(0.0..highest * 1.05, (0..bars.len()).into_segmented())?;
    let label = |at: &SegmentValue<usize>| match at {
        SegmentValue::CenterOf(index) => bars.get(*index).map_or_else(String::new, |(label, _)| label.clone()),
        _ => String::new(),
    };
    chart.configure_mesh().disable_y_mesh().y_labels(bars.len()).y_label_formatter(&label).draw()?;
    chart.draw_series(bars.iter().enumerate().map(|(index, (_, value))| {
        let corners = [(0.0, SegmentValue::Exact(index)), (*value, SegmentValue::Exact(index + 1))];
        let mut bar = Rectangle::new(corners, BLUE.mix(0.6).filled());
        bar.set_margin(3, 3, 0, 0);
        bar
    }))?;
    area.present()?;
    println!("wrote {}", path.display());
    Ok(())
}

/// One metric of everybody in [`panels`].
#[derive(Debug)]
pub struct Panel {
    /// What is shown, and in what unit.
    pub title: String,
    /// A value for each row, from top to bottom.
    pub values: Vec<f64>,
}

/// Metrics side by side, with the same rows in each. Every bar has its value beside it, since the scales differ. The
/// first `ours` rows stand out.
pub fn panels(name: &str, title: &str, rows: &[&str], ours: usize, panels: &[Panel]) -> Result<()> {
    const NAMES: u32 = 140;
    const ROW: i32 = 32;
    const TOP: i32 = 34;
    let path = path(name)?;
    let height = u32::try_from(TOP + ROW * i32::try_from(rows.len())?)? + 40;
    let area = SVGBackend::new(&path, (SIZE.0, height)).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(title, ("sans-serif", 22))?;
    let (names, bars) = area.split_horizontally(NAMES);
    for (name, y) in rows.iter().zip((TOP..).step_by(ROW as usize)) {
        names.draw(&Text::new((*name).to_owned(), (12, y + 4), ("sans-serif", 18)))?;
    }
    let areas = bars.split_evenly((1, panels.len()));
    for (panel, area) in panels.iter().zip(&areas) {
        let (width, _) = area.dim_in_pixel();
        // Room for the longest value behind the longest bar.
        let longest = f64::from(width.saturating_sub(70));
        let highest = panel.values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        area.draw(&Text::new(panel.title.clone(), (0, 10), ("sans-serif", 17)))?;
        for (row, (value, y)) in panel.values.iter().zip((TOP..).step_by(ROW as usize)).enumerate() {
            let end = (value / highest * longest).max(1.0) as i32;
            let color = if row < ours { RGBColor(37, 99, 235) } else { RGBColor(148, 163, 184) };
            area.draw(&Rectangle::new([(0, y), (end, y + 20)], color.filled()))?;
            area.draw(&Text::new(number(*value), (end + 6, y + 4), ("sans-serif", 17)))?;
        }
    }
    area.present()?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Two digits that matter.
fn number(value: f64) -> String {
    let decimals = match value {
        value if value >= 9.95 => 0,
        value if value >= 0.995 => 1,
        value if value >= 0.0995 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// A line.
#[derive(Debug)]
pub struct Series {
    /// What it is called.
    pub name: String,
    /// Where it goes through, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Lines over two logarithmic axes.
pub fn lines(name: &str, title: &str, axes: [&str; 2], series: &[Series]) -> Result<()> {
    let points = || series.iter().flat_map(|line| &line.points).filter(|(x, y)| *x > 0.0 && *y > 0.0);
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)))
    };
    let (left, right) = ends(&mut points().map(|point| point.0));
    let (low, high) = ends(&mut points().map(|point| point.1));
    if right <= left {
        return Ok(());
    }
    let path = path(name)?;
    let area = SVGBackend::new(&path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 20))
        .margin(20)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((left..right).log_scale(), (low / 2.0..high * 2.0).log_scale())?;
    chart.configure_mesh().x_desc(axes[0]).y_desc(axes[1]).draw()?;
    for (index, line) in series.iter().enumerate() {
        let color = Palette99::pick(index).to_rgba();
        chart
            .draw_series(LineSeries::new(line.points.iter().copied().filter(|(x, y)| *x > 0.0 && *y > 0.0), color))?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], color));
    }
    chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    area.present()?;
    println!("wrote {}", path.display());
    Ok(())
}
