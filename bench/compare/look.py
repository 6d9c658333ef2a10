"""How the charts look: colours, dashes, markers and the style sheet, for dark and light pages.

Rules: colours stay apart for colour-blind readers and stand out from the page by 3 to 1; a kind has a colour, dashes
and a marker of its own, so that the colour is never needed; whatever is added is looked at in dark and in light.
"""

LIGHT = ("#004d5e", "#c48200", "#941400", "#9084ce", "#16a373", "#af29ff", "#42007b", "#330000")
DARK = ("#69eaff", "#ebae48", "#ff689b", "#7c6aff", "#778743", "#ae62b6", "#f3e700", "#d5ffcb")
DASHES = ("none", "7 4", "2 4", "10 3 2 3", "5 3", "1 3", "12 4", "7 2 1 2 1 2")
MARKERS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",  # circle
    "M-4.5-4.5h9v9h-9z",
    "M0-5.5L5.5 4.5h-11z",
    "M0-6L6 0L0 6L-6 0z",
    "M0 5.5L5.5-4.5h-11z",
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "M-6-2.5L0-6L6-2.5L4 5h-8z",
    "M-6-6L0-2.5L6-6L2.5 0L6 6L0 2.5L-6 6L-2.5 0z",
)
KINDS = len(LIGHT)


def _colours(palette: tuple[str, ...]) -> str:
    return " ".join(f".l{kind} {{ stroke: {c} }} .s{kind} {{ fill: {c} }}" for kind, c in enumerate(palette))


STYLE = f""".page {{ fill: #ffffff }} .grid {{ stroke: #d9dfe6 }} .axis {{ stroke: #7b8794 }} text {{ fill: #1d2733 }}
    .soft {{ fill: #4d5966 }} .title {{ font-size: 17px; font-weight: 700 }} .end {{ text-anchor: end }}
    .mid {{ text-anchor: middle }} .line {{ fill: none; stroke-width: 2.2 }} .dot {{ stroke: #ffffff }}
    .over {{ paint-order: stroke; stroke: #ffffff; stroke-width: 4px }}
    {_colours(LIGHT)}
    @media (prefers-color-scheme: dark) {{
      .page {{ fill: #0f151c }} .grid {{ stroke: #2a343f }} text {{ fill: #e8edf3 }}
      .soft {{ fill: #aab6c3 }} .dot, .over {{ stroke: #0f151c }}
      {_colours(DARK)}
    }}"""
