// The numbers of a frame, with one name and one meaning everywhere: page, annotated video, table, guide. What is a
// probability has a percent sign; box score and doubt are numbers from 0 to 1.

import { percent } from "./dom.js";

export const FACTS = {
  Class: "The class of the object, decided by all frames of a shot together",
  "Class probability": "How sure the model is of this class in this shot: its share of the frames’ votes; the table’s column “probability” gives it for each frame",
  "Box score": "How clearly the model sees the object in this box: the mean of the heat map inside it, 0 to 1; the column “score” of the table",
  Presence: "The probability that the object is in this frame at all; the column “presence” of the table",
  Doubt: "How much this frame deserves a look, 0 to 1: little heat, a rival region, a jump, or a classifier that disagrees",
};

const given = (value) => value !== null && value !== undefined;
export const share = (value) => (given(value) ? percent(value) : "–");
export const level = (value) => (given(value) ? value.toFixed(2) : "–");

// What is written at the box of a model, as in an annotated video: "cat 97 %  box 0.81"; "cat?" where the class is in doubt.
export function labelOf({ tag, probability, score, box }, at, unsure = false) {
  return box[at] ? `${tag[at]}${unsure ? "?" : ` ${share(probability[at])}`}  box ${level(score[at])}` : "no object";
}
