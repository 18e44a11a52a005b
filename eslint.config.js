import js from "@eslint/js";
import globals from "globals";

// Token text is hostile: it reaches the page as text nodes only, and nothing of it is ever run.
const UNSAFE = [
  ["MemberExpression[property.name=/^(innerHTML|outerHTML|srcdoc)$/]", "No markup is parsed: write text."],
  ["CallExpression[callee.property.name=/^(insertAdjacentHTML|setHTMLUnsafe|parseFromString)$/]", "No markup is parsed: write text."],
  ["CallExpression[callee.object.name='document'][callee.property.name=/^write(ln)?$/]", "No markup is parsed: write text."],
  ["ImportExpression", "The joiner of scripts (viz/scripts.py) knows plain imports only."],
  ["MetaProperty[meta.name='import']", "The joiner of scripts (viz/scripts.py) knows plain imports only."],
].map(([selector, message]) => ({ selector, message }));

export default [
  { ignores: ["node_modules/", ".venv/", "static/"] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module" },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-syntax": ["error", ...UNSAFE],
      "no-script-url": "error",
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-var": "error",
      "prefer-const": "error",
    },
  },
  { files: ["assets/player/**", "assets/page/**", "tests/browser/**"], languageOptions: { globals: globals.browser } },
  { files: ["tests/player/**"], languageOptions: { globals: globals.node } },
];
