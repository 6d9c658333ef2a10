"""The live page: the shipped programs in a simulated world of two Regions, disturbed from a
browser.

Scene      the world, ten milliseconds at a time      picture    what the page is sent of it
Controls   what a visitor may set, checked            Show       time passes while somebody watches
Server     the page on 127.0.0.1
"""
