// The keys of reveal.js: arrows, Esc for the overview, S for the speaker's notes, ? for the others.
const root = document.documentElement;
const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
root.dataset.theme = dark() ? "dark" : "light";
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
});
Reveal.initialize({ hash: true, width: 1280, height: 720, center: false, transition: "none", plugins: [RevealNotes] });
