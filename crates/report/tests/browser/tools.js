"use strict";
const troubles = [];
addEventListener("error", (event) => troubles.push(`error: ${event.message}`));
addEventListener("securitypolicyviolation", (event) => troubles.push(`refused: ${event.violatedDirective}`));

const key = (k, at) => (at ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true }));

// Red, green, blue and opacity, each from 0 to 1.
const channels = (colour) => {
  const numbers = colour.match(/[\d.]+/g).map(Number);
  const [r, g, b] = colour.startsWith("rgb") ? numbers.slice(0, 3).map((n) => n / 255) : numbers;
  return [r, g, b, numbers[3] ?? 1];
};
const luminance = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (element) => {
  if (!element) return [1, 1, 1];
  const [r, g, b, opacity] = channels(getComputedStyle(element).backgroundColor);
  if (opacity === 1) return [r, g, b];
  const behind = ground(element.parentElement);
  return [r, g, b].map((c, i) => c * opacity + behind[i] * (1 - opacity));
};
// The texts whose contrast with their ground is less than 4.5 to 1, which WCAG asks for.
const faint = () => {
  const found = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || element.closest("script, style, noscript, svg, [hidden]")) continue;
    const [text, behind] = [luminance(channels(getComputedStyle(element).color).slice(0, 3)), luminance(ground(element))];
    const contrast = (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
    if (contrast < 4.5) found.add(`${contrast.toFixed(2)} ${element.className || element.tagName}: ${texts.currentNode.data.slice(0, 30)}`);
  }
  return [...found];
};

// Puts what a test returns in the place of the page.
const finish = (test) => {
  let result;
  try {
    result = test();
  } catch (error) {
    result = { thrown: String(error.stack) };
  }
  document.body.textContent = `RESULT${JSON.stringify(result)}END`;
};
