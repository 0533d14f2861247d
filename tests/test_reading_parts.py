"""What makes a rendered page light, linked and readable, piece by piece and without a browser."""

import base64
import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pandas as pd
import pytest

from ffilab.page import draw, files

SVG = '<?xml version="1.0"?>\n<!-- made -->\n<svg height="144pt" width="288pt">\n<metadata>who</metadata>\n<path d="M 1.23456 2.000000"/>\n</svg>'


def page(text):
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", {"text/html": text})])
    return nbformat.v4.new_notebook(cells=[cell])


def test_figures_and_tables_become_files(tmp_path):
    drawing, table = (base64.b64encode(text.encode()).decode() for text in (SVG, "a,b\n1,2\n"))
    figure = f'{draw.SWITCH}<img class="ffi-light" alt="one &lt; two" src="data:image/svg+xml;base64,{drawing}">'
    made = page(f'{figure}<a download="t.csv" href="data:text/csv;base64,{table}">CSV</a>')
    files.set_apart(made, tmp_path, "../../_static")
    text = made.cells[0].outputs[0].data["text/html"]
    assert "base64" not in text
    assert "<style>" not in text
    assert 'alt="one &lt; two" width="384" height="192" loading="lazy"' in text
    svg, csv = (next((tmp_path / files.FOLDER).glob(f"*.{kind}")) for kind in ("svg", "csv"))
    assert f'src="../../_static/files/{svg.name}"' in text
    assert csv.read_text() == "a,b\n1,2\n"
    assert 'd="M 1.23 2"' in svg.read_text()
    assert "who" not in svg.read_text()


def test_what_the_instrument_draws_is_what_is_set_apart(displayed):
    draw.figure(lambda figure: figure.subplots().plot([1, 2]), "a line", data=pd.DataFrame({"x": [1]}))
    shown = displayed[0][0].data
    assert len(files.IMAGE.findall(shown)) == 2
    assert len(files.CSV.findall(shown)) == 1
    assert files.SWITCH.search(shown)


# Viénot, Brettel and Mollon (1999), on linear RGB.
SEEN_BY = {
    "protanope": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
    "deuteranope": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
}


def lab(colour, matrix):
    """A colour as such an eye sees it, in CIELAB."""
    rgb = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ np.clip(
        np.array(matrix) @ linear, 0, 1
    )
    x, y, z = np.cbrt(xyz / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eye", SEEN_BY)
def test_colours_differ_for_every_eye(eye):
    seen = [lab(colour, SEEN_BY[eye]) for colour in draw.PALETTE]
    distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)]
    # A just noticeable difference is about 2.3.
    assert min(distances) > 10


def test_groups_differ_in_shape_too():
    rows = pd.DataFrame({"a": list("xyz"), "g": list("pqr"), "value": 1.0, "low": 0.5, "high": 1.5})
    axes = draw.intervals(plt.figure(), rows, "a", "g")
    shapes = [container[0].get_marker() for container in axes.containers]
    plt.close()
    assert len(set(shapes)) == 3
    assert len(set(draw.MARKERS)) == len(draw.PALETTE)
