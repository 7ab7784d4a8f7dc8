// JSON with whole numbers of any size: 2**53 + 1 typed into the form arrives as 2**53 + 1.

export function parseJson(text) {
  return JSON.parse(text, (key, value, context) => {
    const exact = typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "");
    return exact ? BigInt(context.source) : value;
  });
}

export function writeJson(value, indent = 2) {
  return write(value, indent ? "\n" : "", " ".repeat(indent));
}

function write(value, lineEnd, indent) {
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => write(item, lineEnd && lineEnd + indent, indent))
    : Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => `${JSON.stringify(key)}:${lineEnd && " "}${write(item, lineEnd && lineEnd + indent, indent)}`);
  const [open, close] = isList ? "[]" : "{}";
  return items.length === 0 ? open + close : open + lineEnd + (lineEnd && indent) + items.join(`,${lineEnd}${lineEnd && indent}`) + lineEnd + close;
}
