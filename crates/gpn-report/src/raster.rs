//! A drawing as pixels.

use crate::ReportError;
use crate::font;
use crate::scene::{Drawn, Paint, Path, Scene, Step, Text};
use crate::svg::HALO;
use tiny_skia as skia;

/// Draws at `scale` pixels per unit and packs the picture as PNG, whose resolution says that 96 units are an
/// inch.
pub(crate) fn to_png(scene: &Scene, scale: f32, title: &str) -> Result<Vec<u8>, ReportError> {
    let (width, height) = ((scene.width * scale).ceil() as u32, (scene.height * scale).ceil() as u32);
    let too_large = || ReportError::PictureSize { figure: title.to_owned(), width, height };
    if u64::from(width) * u64::from(height) > 400_000_000 {
        return Err(too_large());
    }
    let mut picture = skia::Pixmap::new(width, height).ok_or_else(too_large)?;
    picture.fill(skia::Color::WHITE);
    let transform = skia::Transform::from_scale(scale, scale);
    for mark in scene.items.iter().flat_map(|item| &item.marks) {
        match mark {
            Drawn::Shape(shape) => {
                let Some(path) = outline(&shape.path) else { continue };
                if let Some(fill) = shape.fill {
                    picture.fill_path(&path, &paint(fill), skia::FillRule::Winding, transform, None);
                }
                if let Some(stroke) = shape.stroke {
                    let style = skia::Stroke {
                        width: stroke.width,
                        line_cap: if stroke.dash.is_some() {
                            skia::LineCap::Butt
                        } else {
                            skia::LineCap::Round
                        },
                        line_join: skia::LineJoin::Round,
                        dash: stroke.dash.and_then(|dash| skia::StrokeDash::new(dash.to_vec(), 0.0)),
                        ..skia::Stroke::default()
                    };
                    picture.stroke_path(&path, &paint(stroke.paint), &style, transform, None);
                }
            }
            Drawn::Text(text) => draw_text(&mut picture, text, transform),
        }
    }
    pack(&picture, scale).map_err(|source| ReportError::Png { figure: title.to_owned(), source })
}

fn draw_text(picture: &mut skia::Pixmap, text: &Text, transform: skia::Transform) {
    let [x, y] = text.start();
    let mut builder = skia::PathBuilder::new();
    font::outline(&text.text, text.size, text.weight, x, y, &mut builder);
    let Some(mut path) = builder.finish() else { return };
    if text.upright {
        let turned = path.transform(skia::Transform::from_rotate_at(-90.0, x, y));
        let Some(turned) = turned else { return };
        path = turned;
    }
    if text.halo {
        let style = skia::Stroke { width: HALO, line_join: skia::LineJoin::Round, ..skia::Stroke::default() };
        let paper = paint(crate::colour::Colour::Paper.into());
        picture.stroke_path(&path, &paper, &style, transform, None);
    }
    picture.fill_path(&path, &paint(text.paint), skia::FillRule::Winding, transform, None);
}

fn outline(path: &Path) -> Option<skia::Path> {
    let mut builder = skia::PathBuilder::new();
    for step in &path.0 {
        match *step {
            Step::Move([x, y]) => builder.move_to(x, y),
            Step::Line([x, y]) => builder.line_to(x, y),
            Step::Curve([a, b], [c, d], [x, y]) => builder.cubic_to(a, b, c, d, x, y),
            Step::Close => builder.close(),
        }
    }
    builder.finish()
}

fn paint(paint: Paint) -> skia::Paint<'static> {
    let [r, g, b] = paint.colour.rgb();
    let alpha = (paint.opacity.clamp(0.0, 1.0) * 255.0).round() as u8;
    let mut out = skia::Paint { anti_alias: true, ..skia::Paint::default() };
    out.set_color_rgba8(r, g, b, alpha);
    out
}

fn pack(picture: &skia::Pixmap, scale: f32) -> Result<Vec<u8>, png::EncodingError> {
    // The ground is opaque, so every pixel is, and the premultiplied colours are the colours.
    let rgb: Vec<u8> = picture.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width(), picture.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let per_metre = (scale * 96.0 / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&rgb)?;
    writer.finish()?;
    Ok(bytes)
}
