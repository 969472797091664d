// Small PNG images, each a little different: stripes on a ground with some noise.

import { deflateSync } from "node:zlib";

const SIDE = 48;

/** An image in two colours; `seed` moves the stripes and the noise. */
export function stripes(first, second, seed) {
  const rows = Buffer.alloc(SIDE * (1 + SIDE * 3));
  let state = (seed * 2654435761 + 1) >>> 0;
  const noise = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 24) % 23;
  };
  for (let y = 0; y < SIDE; y += 1) {
    for (let x = 0; x < SIDE; x += 1) {
      const colour = Math.floor((x + y + seed * 3) / 6) % 2 === 0 ? first : second;
      for (let c = 0; c < 3; c += 1) rows[y * (1 + SIDE * 3) + 1 + x * 3 + c] = Math.min(255, colour[c] + noise());
    }
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(SIDE, 0);
  head.writeUInt32BE(SIDE, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const out = Buffer.alloc(8 + body.length);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(checksum(body), 4 + body.length);
  return out;
}

/** The checksum of PNG, CRC-32. */
function checksum(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}
