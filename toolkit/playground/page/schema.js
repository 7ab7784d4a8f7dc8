// What kind of field a JSON Schema needs. The server is the judge of values; this only chooses how they are typed.

const MAX_DEPTH = 5;

export function follow(schema, root) {
  let found = schema;
  for (let step = 0; step < 10 && typeof found?.$ref === "string"; step += 1) {
    const { $ref, ...beside } = found;
    found = { ...resolve($ref, root), ...beside };
  }
  return found !== null && typeof found === "object" ? found : {};
}

function resolve(reference, root) {
  if (!reference.startsWith("#")) return {};
  let steps;
  try {
    steps = decodeURIComponent(reference.slice(1)).split("/").slice(1);
  } catch {
    return {};
  }
  const found = steps.reduce((node, step) => node?.[step.replaceAll("~1", "/").replaceAll("~0", "~")], root);
  return found !== null && typeof found === "object" ? found : {};
}

// "text", "lines", "number", "choice", "list", "object", or "json" for everything that has no simple form.
export function fieldKind(schema, depth) {
  if (choices(schema) !== null) return "choice";
  if (["anyOf", "oneOf", "allOf", "not", "if"].some((word) => word in schema)) {
    return schema.type === "object" && "properties" in schema && depth === 0 ? "object" : "json";
  }
  if (schema.type === "string") return isOneLine(schema) ? "text" : "lines";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "array" && schema.items && depth < MAX_DEPTH) return "list";
  const isObject = schema.type === "object" || (depth === 0 && schema.type === undefined);
  return isObject && (depth === 0 || schema.properties) && depth < MAX_DEPTH ? "object" : "json";
}

function isOneLine(schema) {
  const resource = schema["x-resource"];
  if (resource !== undefined) return resource !== "shell";
  return "pattern" in schema || "format" in schema || schema.maxLength <= 200;
}

export function choices(schema) {
  if (schema.type === "boolean") return [true, false];
  const values = schema.enum ?? ("const" in schema ? [schema.const] : null);
  return values !== null && values.every((value) => value === null || typeof value !== "object") ? values : null;
}

export function describeType(schema) {
  const kind = Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type;
  if (schema.enum) return "one of these";
  return kind ?? (schema.anyOf || schema.oneOf ? "one of several" : "any JSON");
}

export function describeLimits(schema, withDefault = true) {
  const notes = [];
  const text = (number) => (typeof number === "number" ? number.toLocaleString("en") : number);
  const between = (low, high, unit) => {
    if (low !== undefined && high !== undefined) notes.push(`${text(low)} to ${text(high)}${unit}`);
    else if (low !== undefined) notes.push(`at least ${text(low)}${unit}`);
    else if (high !== undefined) notes.push(`at most ${text(high)}${unit}`);
  };
  between(schema.minimum, schema.maximum, "");
  between(schema.minItems, schema.maxItems, " items");
  between(schema.minLength || undefined, schema.maxLength, " characters");
  if (schema.exclusiveMinimum !== undefined) notes.push(`more than ${schema.exclusiveMinimum}`);
  if (schema.exclusiveMaximum !== undefined) notes.push(`less than ${schema.exclusiveMaximum}`);
  if (schema.pattern) notes.push(`pattern ${schema.pattern}`);
  if (withDefault && "default" in schema) notes.push(`default ${JSON.stringify(schema.default)}`);
  return notes.join("; ");
}
