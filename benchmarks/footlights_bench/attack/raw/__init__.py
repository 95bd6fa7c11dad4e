"""Raw client side of TCP, HTTP/1.1 and WebSocket: sends any bytes, lawful or not. Nothing here judges an answer."""
