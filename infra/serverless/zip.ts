/**
 * A zip as Lambda takes it, the same bytes for the same files: by name, with one date for all, readable by everybody.
 * No more of the format than that: no folders, nothing over 4 GB (Lambda takes 250 MB), names in UTF-8.
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 */
import { crc32, deflateRawSync } from "node:zlib";

/** @param files contents by path, with / between folders */
export const zip = (files: Readonly<Record<string, Uint8Array>>): Buffer => {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const name of Object.keys(files).sort()) {
    const { head, packed, path } = entryOf(name, files[name] as Uint8Array);
    const local = Buffer.concat([localSignature, head, path, packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(regularReadableFile, 6);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.concat([entrySignature, head, rest, path]));
    parts.push(local);
    offset += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(parts.length, 4);
  end.writeUInt16LE(parts.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...parts, listed, endSignature, end]);
};

const localSignature = Buffer.from("PK\u0003\u0004");
/** Of an entry in the directory, and that it was made on Unix by version 2.0: without that its permissions don't count. */
const entrySignature = Buffer.from("PK\u0001\u0002\u0014\u0003");
const endSignature = Buffer.from("PK\u0005\u0006");
const regularReadableFile = 0o100644 * 0x10000;
const namesInUtf8 = 0x0800;
const deflated = 8;
/** 1 January 1980, where the format's time begins. */
const date = 0x0021;

/** What an entry's head says in both places: version, flags, method, time, date, checksum, sizes, length of the name. */
const entryOf = (name: string, content: Uint8Array) => {
  const path = Buffer.from(name);
  const packed = deflateRawSync(content, { level: 9 });
  const head = Buffer.alloc(26);
  head.writeUInt16LE(20, 0);
  head.writeUInt16LE(namesInUtf8, 2);
  head.writeUInt16LE(deflated, 4);
  head.writeUInt16LE(date, 8);
  head.writeUInt32LE(crc32(content), 10);
  head.writeUInt32LE(packed.length, 14);
  head.writeUInt32LE(content.length, 18);
  head.writeUInt16LE(path.length, 22);
  return { head, packed, path };
};
