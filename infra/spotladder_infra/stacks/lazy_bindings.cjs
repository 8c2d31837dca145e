// Loaded into Node.js before the bindings. The index of @cdktn/provider-google requires each of its 1,800 modules when
// it is loaded, which takes 3 seconds; a stack uses 20 of them. Here each module is loaded when it is used first.
"use strict";
const Module = require("node:module");

const INDEX = /[\\/]@cdktn[\\/]provider-google[\\/]lib[\\/]index\.js$/;
const EXPORT = /^exports\.(\w+) = __importStar\(require\(("[^"]+"|'[^']+')\)\);$/gm;
const LAZY =
  'Object.defineProperty(exports, "$1", { configurable: true, enumerable: true, get: () => __importStar(require($2)) });';

const compile = Module.prototype._compile;
Module.prototype._compile = function (content, filename, ...rest) {
  const source = INDEX.test(filename) ? content.replace(EXPORT, LAZY) : content;
  return compile.call(this, source, filename, ...rest);
};
