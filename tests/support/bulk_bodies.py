"""Bodies of bulk requests, well-formed and malformed, for a path that names the default index."""

_BODIES = (
    *(b"", b"\n", b"\n\n", b"   \n", b"\r\n", b"\r", b"{}\n", b"{}", b"\x00\n{}\n", b"\xff\xfe{\x00\n"),
    *(b'{"index":{}}', b'{"index":{}}\n', b'{"index":{}}\n\n', b'{"index":{}}\n{"text":"a"}'),
    b'{"index":{}}\r\n{"text":"a"}\r\n',
    b'{"index":{}}\r{"text":"a"}\n',
    b'{"index":{}}\n{"text":"a"}\r\r\n',
    b'\n{"index":{}}\n{"text":"a"}\n',
    b'\r\n{"index":{}}\n{"text":"a"}\n',
    b'{"index":{}}\n\n{"text":"a"}\n',
    b'{"index":{}}\n{"text":"a"}\n\n \n\r\n\t\n',
    b'#x\n{"index":{}}\n{"text":"a"}\n',
    b'//c\n{"index":{}}\n{"text":"a"}\n',
    b'{"index":{}}\n{"text":"a"}\n{"frob":{}}\n',
    b'{"index":{"_id":"1"}}\n{"text":"a"}\n{"index":{}}\n',
    b'{"index":{"_id":"2"}}\n{"text":"a"}\n{"update":{"_id":"2"}}\nx\n{"index":{"_id":"3"}}\n{"text":"b"}\n',
    b'{"delete":{}}\n',
    b'{"delete":{"_id":"x"}}\n',
    b'{"delete":{"_id":"1"}}',
    b'{"delete":{"_id":""}}\n',
    b'{"delete":{"_id":"x"}}\n{"text":"a"}\n',
    b'{"delete":{"_id":"1","dynamic_templates":{"a":"b"}}}\n',
    b'{"update":{"_id":"1","version":3}}\n',
)
# These are not valid names of a single index, though Elasticsearch can resolve most of them to indices.
_NO_NAMES = (
    *(b"", b"A", b"*", b"test-*", b"<test-*>", b"_all", b"a,b"),
    *(b"x:a", b"-a", b"a::data", b".", b"..", b"a/b"),
)
# Each of the following values is one of the two lines of an item.
_ACTIONS = (
    *(b"{", b"x", b"1", b"[]", b'"index"', b"null", b'{"index"', b'{"index":', b'{"index":{}'),
    b'{"index":{}]',
    *(b'{"frob":{}}', b'{"INDEX":{}}', b'{"in\\u0064ex":{}}', b"{'index':{}}", b"{index:{}}"),
    *(b'{"index":1}', b'{"index":null}', b'{"index":[]}', b'{"index":"x"}', b'{"index":{"a":1'),
    *(b'{"index":{},"create":{}}', b'{"index":{},"index":{"_id":"1"}}', b'{"index":{},"a":1}'),
    *(b'{"index":{"_id":"w"},"attempts":0}', b'{"index":{"_id":"w"},"a":{"b":[1,{}]}', b'{"index":{},"a'),
    *(b'{/*"index":{"_id":"c"},*/"index":{}}', b'{"index":{"_id":"c"/*}*/,"_index":"a"}}'),
    *(b'{"delete":{"_id":"1"},"index":{}}', b'{"index":{"_id":"1"},"delete":{"_id":"2"}}'),
    *(b'{"index":{}}' + rest for rest in (b",", b"}", b" ]", b" xx", b" 1", b"{}", b"//c", b"\xef\xbb\xbf")),
    *(start + b'{"index":{}}' for start in (b"/*c*/", b"\xef\xbb\xbf", b"\t ", b"\x0b", b",")),
    b' { "index" : { "_id" : "sp" } } ',
    *(
        b'{"index":{"_id":%b}}' % value
        for value in (
            *(b"1", b"true", b"null", b'""', b"{}", b"[]", b'["a"]', b"tru", b"NaN", b"-", b"01", b"1,"),
            *(b"1.0", b"1.10", b"1.5e5", b"1E400", b"18446744073709551616", b"1" * 2_000, b"[" * 2_000),
            *(b'"a', b'"a" "b"', b'"\x01"', b'"\\x"', b'"\xff"', b'"\xed\xa0\x80"', b'"\\ud800"'),
            *(b'"\\ud83d\\ude00"', b'"' + b"x" * 513 + b'"'),
        )
    ),
    *(
        b'{"index":{%b}}' % given
        for given in (
            *(
                b'"_index":null',
                b'"_index":-1',
                b'"_index":[]',
            ),
            *(b'"_index":"a","_index":"b"', b'"_index":null,"_index":"b"', b'"_\\u0069d":"esc"'),
            b'"_id":1,"_id":2',
            *(b'"routing":"a"', b'"routing":1', b'"routing":{}', b'"_routing":"a"', b'"routing":null'),
            *(b'"pipeline":"nope"', b'"pipeline":"_none"', b'"pipeline":true'),
            *(
                b'"op_type":%b' % each
                for each in (b'"create"', b'"index"', b'"x"', b'"CREATE"', b"true", b"null")
            ),
            *(b'"_type":"_doc"', b'"_type":null', b'"frob":1', b'"":null', b'"x":null', b'"x":[]'),
            b'"require_alias":true',
            *(b'"version":3', b'"version":1E400', b'"version":99999999999999999999,"_id":"1"'),
            b'"version_type":"x"',
            *(b'"_id":"v","version":3,"version_type":"external"', b'"if_seq_no":1', b'"if_seq_no":"x"'),
            *(
                b'"dynamic_templates":{}',
                b'"dynamic_templates":{"a":[]}',
                b'"dynamic_templates":{"a":' + b"[" * 2_000,
            ),
        )
    ),
    *(b'{"index":{"_index":"%b"}}' % name for name in _NO_NAMES),
    b'{"create":{"op_type":"index"}}',
)
_DOCUMENTS = (
    *(b"x", b"[]", b"1", b"null", b"\xff", b'{"text":"a"', b'{"text":"a"}{"text":"b"}', b'{"text":"a"} x'),
    *(b'{"text":"a","text":"b"}', b'{"text":"a","text":null}', b'{"te\\u0078t":"a"}', b'{"text":["a"]}'),
    b'{"text":1}',
    *(
        b'{"text":"a","b":%b}' % each
        for each in (b"NaN", b"-Infinity", b"1e400", b"1E5", b"01", b"9" * 5_000)
    ),
    *(
        b'{"text":"a%b"}' % each
        for each in (b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\x00", b"\t")
    ),
    *(b'{"text":"a","\\udc00":"\\ud83d"}', b'{"text":"a","b":' + b"[" * 2_000 + b"]" * 2_000 + b"}"),
    *(start + b'{"text":"a"}' for start in (b"/*c*/", b"\xef\xbb\xbf", b"#x\r", b"\t ", b"\x00")),
    *(b'{"text":"a"}' + rest for rest in (b"//c", b"\xef\xbb\xbf", b"\x00", b",", b"}", b"\t ")),
    *(b'{"text":/**/"a"}', b"{'text':'a'}", b'{text:"a"}', b'{"text":"a",}'),
    *(b'{"text":"a","dedup":{"root":"x"}}', b'{"text":"a","d\\u0065dup.root":"x","dedup":1}'),
)
_UPDATES = (
    *(b"", b"{}", b"[]", b"x", b'{"frob":{}}', b'{"doc":1}', b'{"doc":{}}', b'{"doc":null,"upsert":null}'),
    *(b'{"doc":{"text":"a"},"doc_as_upsert":%b}' % each for each in (b"true", b'"true"', b'"yes"', b"1")),
    *(
        b'{"doc":{"text":"a"},"doc":{"text":"b"},"doc_as_upsert":true}',
        b'{"script":"x","upsert":{"text":"a"}}',
    ),
    *(b'{"upsert":{"text":"a"},"doc":{"n":1}}' + rest for rest in (b"", b"}", b" x", b"//c", b",", b"\x80")),
    *(b'\xef\xbb\xbf{"upsert":{"text":"a"},"doc":{"n":1}}', b'/**/{"upsert":{"text":"a"},"doc":{"n":1}}'),
    *(
        b'{"upsert":{"text":"\\ud800"},"doc":{"n":1}}',
        b'{"doc":{"dedup":{"root":"x"}},"upsert":{"text":"a"}}',
    ),
)

BODIES = (
    *_BODIES,
    *(each + b'\n{"text":"a"}\n' for each in _ACTIONS),
    *(b'{"index":{}}\n' + each + b"\n" for each in _DOCUMENTS),
    *(b'{"update":{"_id":"u%d"}}\n' % at + each + b"\n" for at, each in enumerate(_UPDATES)),
)
