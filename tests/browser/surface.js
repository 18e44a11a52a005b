// The bare page's script: the player as it is, and those of its parts that tests look into.
import { Player } from "../../assets/player/player.js";
import { axisName } from "../../assets/player/charts/axes.js";
import { asTraces } from "../../assets/player/charts/layers.js";
import { library } from "../../assets/player/charts/library.js";
import { markerShape } from "../../assets/player/charts/shapes.js";
import { toggleFullScreen } from "../../assets/player/controls/full_screen.js";
import { Race } from "../../assets/player/race/race.js";
import { unescapeMarkup } from "../../assets/player/stream/escape.js";
import { PHASES } from "../../assets/player/stream/fates.js";
import { seenNodes } from "../../assets/player/stream/tree.js";
import { showTable } from "../../assets/player/tables/table.js";

globalThis.Specscope = {
  Player, Race, PHASES, asTraces, axisName, library, markerShape, seenNodes, showTable, toggleFullScreen, unescapeMarkup,
};
