/** Zip files, no more of them than tests need. https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT */
import { crc32, inflateRawSync } from "node:zlib";

/** A zip of these files, stored as they are. */
export const zipOf = (files: Readonly<Record<string, string>>): Buffer => {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [name, text] of Object.entries(files)) {
    const [path, content] = [Buffer.from(name), Buffer.from(text)];
    // Version, flags, method, time, date, checksum, both sizes, length of the name, no extra field.
    const about = Buffer.alloc(26);
    about.writeUInt16LE(20, 0);
    about.writeUInt32LE(crc32(content), 10);
    about.writeUInt32LE(content.length, 14);
    about.writeUInt32LE(content.length, 18);
    about.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\u0003\u0004"), about, path, content]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(at, 10);
    directory.push(Buffer.from("PK\u0001\u0002\u0014\u0000"), about, rest, path);
    parts.push(local);
    at += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(parts.length, 4);
  end.writeUInt16LE(parts.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, listed, Buffer.from("PK\u0005\u0006"), end]);
};

/** A zip's files by name, read from the directory at its end. */
export const filesIn = (zip: Buffer): Record<string, Buffer> => {
  const end = zip.lastIndexOf("PK\u0005\u0006");
  const files: Record<string, Buffer> = {};
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const length = (offset: number) => zip.readUInt16LE(at + offset);
    const name = zip.toString("utf8", at + 46, at + 46 + length(28));
    const local = zip.readUInt32LE(at + 42);
    const from = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const packed = zip.subarray(from, from + zip.readUInt32LE(at + 20));
    files[name] = length(10) === 0 ? packed : inflateRawSync(packed);
    at += 46 + length(28) + length(30) + length(32);
  }
  return files;
};
