// The page around the player: what its template calls.
import { holdBusyButtons } from "./busy.js";
import { showChat } from "./chat.js";
import { showCost } from "./cost/cost.js";
import { showDoctor } from "./doctor.js";
import { showDebug } from "./debug/debug.js";
import { restFrames } from "./idle_frames.js";
import { showLandscape } from "./landscape.js";
import { showLearn } from "./learn/learn.js";
import { closeLeftMenus } from "./menus.js";
import { followPointer } from "./pointer.js";
import { showRace } from "./race.js";
import { showSettings } from "./settings_race.js";
import { shown } from "./shown.js";
import { followHome, followTabs, turnToAddress } from "./tabs.js";
import { followLimits } from "./text_limits.js";
import { toggleTheme } from "./theme.js";
import { showViewer } from "./viewer.js";

// Gradio's <base href="./"> leads where addresses lead without it. But where a page has one, plotly ties the hatching of
// its charts to the page's address of that moment, and charts lose it once the address changes.
document.querySelector("base")?.remove();

followHome();
followTabs();
followPointer();
holdBusyButtons();
followLimits();
closeLeftMenus();

globalThis.SpecscopeApp = {
  viewer(element, io) {
    showViewer(element, io);
    turnToAddress();
    restFrames();
  },
  race: showRace,
  chat: showChat,
  doctor: showDoctor,
  landscape: showLandscape,
  settings: showSettings,
  debug: showDebug,
  cost: showCost,
  learn: showLearn,
  theme: toggleTheme,
  shown,
};
document.dispatchEvent(new Event("specscope")); // for components that came before this script: see app/pages/page_script.py
