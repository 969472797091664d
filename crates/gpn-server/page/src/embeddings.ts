// Embeddings from files and text: .npy (float or integer, C order), JSON, CSV and the like.

/** Reads rows of numbers from a file, by its name and content. */
export async function readRows(file: File): Promise<number[][]> {
  const buffer = await file.arrayBuffer();
  const head = new Uint8Array(buffer, 0, Math.min(6, buffer.byteLength));
  if (head[0] === 0x93 && String.fromCharCode(...head.slice(1)) === "NUMPY") return npy(buffer, file.name);
  return parseRows(new TextDecoder().decode(buffer), file.name);
}

/** Reads rows of numbers from text: JSON, or one row a line. */
export function parseRows(text: string, name: string): number[][] {
  const trimmed = text.trim();
  if (trimmed === "") throw new Error(`${name}: there is nothing in it`);
  if (trimmed.startsWith("[") || trimmed.startsWith("{")) return json(trimmed, name);
  const rows: number[][] = [];
  trimmed.split(/\r?\n/).forEach((line, at) => {
    const fields = line.trim().split(/[\s,;]+/).filter((field) => field !== "");
    if (fields.length === 0) return;
    const row = fields.map(Number);
    if (row.every(Number.isFinite)) rows.push(row);
    else if (at > 0 || rows.length > 0) {
      throw new Error(`${name}, line ${at + 1}: "${fields[row.findIndex((value) => !Number.isFinite(value))] ?? ""}" is no number`);
    }
  });
  if (rows.length === 0) throw new Error(`${name}: there is no row of numbers in it`);
  return rows;
}

/** Refuses rows of another length than the model takes. */
export function checkRows(rows: number[][], length: number, name: string): void {
  const wrong = rows.findIndex((row) => row.length !== length);
  if (wrong >= 0) throw new Error(`${name}, row ${wrong + 1}: it has ${rows[wrong]?.length ?? 0} numbers; this model takes ${length}`);
}

function json(text: string, name: string): number[][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: this is no JSON (${error instanceof Error ? error.message : "unreadable"})`);
  }
  if (value && typeof value === "object" && "embeddings" in value) value = value.embeddings;
  else if (value && typeof value === "object" && "embedding" in value) value = value.embedding;
  const isRow = (row: unknown): row is number[] => Array.isArray(row) && row.every((one) => typeof one === "number");
  if (isRow(value) && value.length > 0) return [value];
  if (Array.isArray(value) && value.length > 0 && value.every(isRow)) return value;
  throw new Error(`${name}: it should be a list of numbers, or a list of such lists`);
}

function npy(buffer: ArrayBuffer, name: string): number[][] {
  const view = new DataView(buffer);
  const wide = (view.getUint8(6) ?? 1) >= 2;
  const start = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  if (start + length > buffer.byteLength) throw new Error(`${name}: the file is cut off`);
  const header = new TextDecoder("latin1").decode(new Uint8Array(buffer, start, length));
  const type = /'descr':\s*'([<>|=]?)([fiu])([1248])'/.exec(header);
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1]?.split(",").map((part) => part.trim()).filter(Boolean).map(Number);
  if (!type || !shape || shape.length < 1 || shape.length > 2) throw new Error(`${name}: it should hold rows of float32 or float64 numbers`);
  if (/'fortran_order':\s*True/.test(header)) throw new Error(`${name}: it is in Fortran order; save it with numpy.ascontiguousarray`);
  const size = Number(type[3]);
  const little = type[1] !== ">";
  const [rows, columns] = shape.length === 1 ? [1, shape[0] ?? 0] : [shape[0] ?? 0, shape[1] ?? 0];
  const at = start + length;
  if (rows * columns === 0) throw new Error(`${name}: there is no row in it`);
  if (at + rows * columns * size > buffer.byteLength) throw new Error(`${name}: the file is cut off`);
  const read = reader(view, `${type[2]}${size}`, little);
  if (!read) throw new Error(`${name}: numbers of kind ${type[2]}${size} are not read; save it as float32`);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => read(at + (row * columns + column) * size)),
  );
}

function reader(view: DataView, type: string, little: boolean): ((at: number) => number) | undefined {
  const readers: Record<string, (at: number) => number> = {
    f4: (at) => view.getFloat32(at, little),
    f8: (at) => view.getFloat64(at, little),
    f2: (at) => half(view.getUint16(at, little)),
    i1: (at) => view.getInt8(at),
    i2: (at) => view.getInt16(at, little),
    i4: (at) => view.getInt32(at, little),
    u1: (at) => view.getUint8(at),
    u2: (at) => view.getUint16(at, little),
    u4: (at) => view.getUint32(at, little),
  };
  return readers[type];
}

function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * 2 ** -14 * (fraction / 1024);
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * 2 ** (exponent - 15) * (1 + fraction / 1024);
}
