// Compares a document with the schema of AsyncAPI 3.0: node asyncapi.mjs DOCUMENT, in a directory with the packages
// @asyncapi/specs, ajv, ajv-formats and js-yaml. .ci/run installs them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(process.cwd() + "/");
const Ajv = require("ajv"), formats = require("ajv-formats"), yaml = require("js-yaml");
const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false, unicodeRegExp: false });
formats(ajv);
const validate = ajv.compile(require("@asyncapi/specs/schemas/3.0.0-without-$id.json"));
if (!validate(yaml.load(readFileSync(process.argv[2], "utf8")))) {
  console.log(validate.errors.slice(0, 10));
  process.exit(1);
}
