// The page around the player: what its template calls.
import { restFrames } from "./idle_frames.js";
import { showRace } from "./race.js";
import { shown } from "./shown.js";
import { followTabs } from "./tabs.js";
import { toggleTheme } from "./theme.js";
import { showViewer } from "./viewer.js";

followTabs();

globalThis.SpecscopeApp = {
  viewer(element, io) {
    showViewer(element, io);
    restFrames();
  },
  race: showRace,
  theme: toggleTheme,
  get viewers() {
    return shown.viewer;
  },
  get races() {
    return shown.race;
  },
};
